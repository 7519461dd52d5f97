#!/usr/bin/env bash
# Runs the tests of the addon under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

node native/build.mjs --sanitize --strict
# The sanitizer has to be there before node; what node itself never frees is not ours to report.
export LD_PRELOAD="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export MILLRACE_NATIVE="$PWD/native/build/millrace-sanitized.node"
exec node node_modules/vitest/vitest.mjs run --project unit --pool forks src/protocols/fanout src/protocols/srtp src/protocols/udp src/publishers/webrtc
