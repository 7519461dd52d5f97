#!/usr/bin/env bash
# Runs the tests of the addon, and what is fuzzed against it, under sanitizers:
#
#   native/test-sanitized.sh          AddressSanitizer and UndefinedBehaviorSanitizer
#   native/test-sanitized.sh leaks    the same, and what was never freed (suppressions: native/leaks.txt)
#   native/test-sanitized.sh thread   ThreadSanitizer
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode="${1:-address}"
library() { g++ -print-file-name="$1"; }

# The sanitizer has to be there before node. What node itself does, it does without being watched.
case "$mode" in
address | leaks)
  node native/build.mjs --sanitize --strict
  preload="$(library libasan.so):$(library libubsan.so)"
  leaks=0
  [ "$mode" = leaks ] && leaks=1
  export ASAN_OPTIONS="detect_leaks=$leaks:abort_on_error=1"
  export LSAN_OPTIONS="suppressions=$PWD/native/leaks.txt:print_suppressions=0"
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export MILLRACE_NATIVE="$PWD/native/build/millrace-sanitized.node"
  run=()
  ;;
thread)
  node native/build.mjs --sanitize=thread --strict
  preload="$(library libtsan.so)"
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1:report_signal_unsafe=0:halt_on_error=1:exitcode=66
  export MILLRACE_NATIVE="$PWD/native/build/millrace-sanitized-thread.node"
  # It cannot work with the addresses that the kernel chooses at random.
  run=(setarch -R)
  ;;
*)
  echo "usage: native/test-sanitized.sh [address|leaks|thread]" >&2
  exit 2
  ;;
esac

LD_PRELOAD="$preload" exec "${run[@]}" node node_modules/vitest/vitest.mjs run --project unit --pool forks --no-file-parallelism \
  src/protocols/fanout src/protocols/srtp src/protocols/udp src/publishers/webrtc src/providers/webrtc test/fuzz/fanout.test.ts
