#!/usr/bin/env bash
# Runs the tests of the addon, its fuzz tests, and a server with viewers amid hostile datagrams, under sanitizers:
#
#   native/test-sanitized.sh          AddressSanitizer and UndefinedBehaviorSanitizer
#   native/test-sanitized.sh leaks    memory that is never freed after thousands of connections
#   native/test-sanitized.sh thread   ThreadSanitizer
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode="${1:-address}"
library() { g++ -print-file-name="$1"; }

# The sanitizer's library must be loaded before node. The code of node itself is not instrumented.
case "$mode" in
address | leaks)
  node native/build.mjs --sanitize --strict
  preload="$(library libasan.so):$(library libubsan.so)"
  export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export MILLRACE_NATIVE="$PWD/native/build/millrace-sanitized.node"
  run=()
  ;;
thread)
  node native/build.mjs --sanitize=thread --strict
  preload="$(library libtsan.so)"
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1:report_signal_unsafe=0:halt_on_error=1:exitcode=66
  export MILLRACE_NATIVE="$PWD/native/build/millrace-sanitized-thread.node"
  # ThreadSanitizer does not work with randomised addresses.
  run=(setarch -R)
  ;;
*)
  echo "usage: native/test-sanitized.sh [address|leaks|thread]" >&2
  exit 2
  ;;
esac

# A plain process, because the test runner ends its workers before the leak check. Node's own allocations and handles that live as
# long as node are some hundred bytes; a leaked connection is thousands of bytes, and there are thousands of connections.
if [ "$mode" = leaks ]; then
  most=4096
  log="$(mktemp)"
  trap 'rm -f "$log"' EXIT
  code=0
  LD_PRELOAD="$preload" ASAN_OPTIONS=detect_leaks=1:exitcode=23 node test/fuzz/run.ts native 5000 2>"$log" || code=$?
  leaked="$(sed -n 's/^SUMMARY: AddressSanitizer: \([0-9]*\) byte(s) leaked.*/\1/p' "$log")"
  echo "${leaked:-0} bytes were not freed, at most $most may"
  if [ "$code" != 0 ] && [ "$code" != 23 ] || [ "$code" = 23 ] && [ "${leaked:-$most}" -ge "$most" ]; then
    cat "$log"
    exit 1
  fi
  exit 0
fi
LD_PRELOAD="$preload" "${run[@]}" node node_modules/vitest/vitest.mjs run --project 'unit*' --pool forks --no-file-parallelism \
  src/services/webrtc src/wire/srtp src/native src/delivery/http src/delivery/thread/hot-files.test.ts src/delivery/thread/answer-cache.test.ts src/delivery/thread/kept-answers.test.ts src/delivery/thread/held-requests.test.ts test/fuzz/fanout.test.ts test/fuzz/secure.test.ts test/fuzz/answers.test.ts

# Viewers and attackers run without a sanitizer, for LIVE_SECONDS.
LIVE_PRELOAD="$preload" LIVE_NATIVE="$MILLRACE_NATIVE" exec "${run[@]}" env -u MILLRACE_NATIVE \
  node test/fuzz/live.ts "${LIVE_SECONDS:-20}" "${LIVE_SEED:-1}"
