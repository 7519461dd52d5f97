// Load client of `webrtc-fanout`: empties the UDP sockets it inherits and counts the RTP packets of each.
// Arguments: first descriptor, number of sockets. Prints one count a line when its standard input ends.
//
// It looks at all sockets in turn, on a clock, and sleeps in between: nobody waits on a socket, so that no send of the
// server pays for waking a reader, which on a network is the business of another machine.
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr unsigned kAtOnce = 64;
// The start of a packet tells what it is; the rest need not be copied.
constexpr size_t kHead = 16;
constexpr int kRestMs = 2;
// On a busy machine the rest can last long. More than the usual limit is for the superuser only; others get the limit.
constexpr int kSocketBuffer = 4 << 20;

bool IsRtp(const uint8_t* head, size_t length) {
  return length >= 12 && head[0] >> 6 == 2 && (head[1] < 192 || head[1] > 223);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int first = atoi(argv[1]);
  const size_t sockets = static_cast<size_t>(atoi(argv[2]));
  std::vector<uint64_t> counts(sockets, 0);
  static uint8_t heads[kAtOnce][kHead];
  static iovec vectors[kAtOnce];
  static mmsghdr messages[kAtOnce];
  for (unsigned n = 0; n < kAtOnce; n += 1) {
    vectors[n] = {heads[n], kHead};
    messages[n] = {};
    messages[n].msg_hdr.msg_iov = &vectors[n];
    messages[n].msg_hdr.msg_iovlen = 1;
  }
  for (size_t at = 0; at < sockets; at += 1) {
    const int descriptor = first + static_cast<int>(at);
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer) != 0) {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    }
  }
  bool ending = false;
  while (true) {
    for (size_t at = 0; at < sockets; at += 1) {
      int received = 0;
      do {
        received = recvmmsg(first + static_cast<int>(at), messages, kAtOnce, MSG_DONTWAIT, nullptr);
        for (int n = 0; n < received; n += 1) {
          if (IsRtp(heads[n], messages[n].msg_len)) counts[at] += 1;
        }
      } while (received == static_cast<int>(kAtOnce));
    }
    if (ending) break;
    pollfd input = {0, POLLIN, 0};
    // What arrived before the order is counted in a last round.
    ending = poll(&input, 1, kRestMs) > 0;
  }
  for (const uint64_t count : counts) printf("%llu\n", static_cast<unsigned long long>(count));
  return 0;
}
