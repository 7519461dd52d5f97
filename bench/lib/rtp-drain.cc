// Load client of the WebRTC benches: empties the UDP sockets it inherits, counts the RTP packets of each and the missing packets.
// Arguments: first descriptor, number of sockets, how it waits, `gro` to receive split messages in one piece, else `plain`, and the number
// of sockets that report the arrival of frames.
//
//   clock    reads all sockets in turn, every 2 ms: no thread waits on a socket, so no send of the server pays for waking a reader, which
//            on a network is the work of another machine
//   wait     one thread waits on all sockets (epoll)
//   threads  a thread waits on each socket, as many players do
//
// Each line on standard input is answered by a line of JSON: packets of each socket and packets missing by their sequence numbers since the
// previous line, the last packets of frames as [RTP timestamp, ns of the monotonic clock], and CPU so far. It ends with its input.
// With only the first two arguments it uses `clock`, and prints one count per line at the end of its input.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace {

constexpr unsigned kAtOnce = 64;
// The beginning of a packet identifies it; the rest need not be copied.
constexpr size_t kHead = 16;
constexpr size_t kWhole = 65536;
constexpr unsigned kWholeAtOnce = 8;
constexpr int kRestMs = 2;
constexpr size_t kControl = 128;
// On a busy machine the pause between reads can be long. A size above the usual limit needs root; other users get the limit.
constexpr int kSocketBuffer = 4 << 20;
constexpr size_t kFlows = 4;

bool IsRtp(const uint8_t* head, size_t length) {
  return length >= 12 && head[0] >> 6 == 2 && (head[1] < 192 || head[1] > 223);
}

uint32_t Read32(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 | at[3];
}

int64_t Nanoseconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// One RTP stream at one socket.
struct Flow {
  uint32_t ssrc = 0;
  bool known = false;
  uint64_t newest = 0;
  // Passed sequence numbers and received packets since the last report.
  uint64_t passed = 0;
  uint64_t came = 0;
};

struct Arrival {
  uint32_t timestamp;
  int64_t at;
};

struct Socket {
  int descriptor = -1;
  bool tells = false;
  std::mutex mutex;
  uint64_t packets = 0;
  Flow flows[kFlows];
  std::vector<Arrival> arrivals;
};

void Count(Socket* socket, const uint8_t* head, size_t length, int64_t at) {
  if (!IsRtp(head, length)) return;
  socket->packets += 1;
  const uint32_t ssrc = Read32(head + 8);
  const auto sequence = static_cast<uint16_t>(head[2] << 8 | head[3]);
  Flow* flow = nullptr;
  for (Flow& candidate : socket->flows) {
    if (candidate.known && candidate.ssrc != ssrc) continue;
    flow = &candidate;
    break;
  }
  if (flow != nullptr) {
    if (!flow->known) {
      flow->known = true;
      flow->ssrc = ssrc;
      flow->newest = static_cast<uint64_t>(sequence) + 65535;
    }
    const auto step = static_cast<int16_t>(sequence - static_cast<uint16_t>(flow->newest));
    if (step > 0) {
      flow->newest += static_cast<uint64_t>(step);
      flow->passed += static_cast<uint64_t>(step);
    }
    flow->came += 1;
  }
  if (socket->tells && (head[1] & 0x80) != 0 && at != 0) socket->arrivals.push_back({Read32(head + 4), at});
}

// Buffers for the messages of one call.
struct Room {
  explicit Room(bool whole) : each(whole ? kWhole : kHead), most(whole ? kWholeAtOnce : kAtOnce) {
    bytes.resize(each * most);
    controls.resize(kControl * most);
    vectors.resize(most);
    messages.resize(most);
  }
  size_t each;
  unsigned most;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> controls;
  std::vector<iovec> vectors;
  std::vector<mmsghdr> messages;
};

// Takes waiting messages, as many as there are buffers; returns their number.
int Take(Socket* socket, Room* room, int flags) {
  for (unsigned n = 0; n < room->most; n += 1) {
    room->vectors[n] = {room->bytes.data() + n * room->each, room->each};
    room->messages[n] = {};
    msghdr& header = room->messages[n].msg_hdr;
    header.msg_iov = &room->vectors[n];
    header.msg_iovlen = 1;
    header.msg_control = room->controls.data() + n * kControl;
    header.msg_controllen = kControl;
  }
  const int count = recvmmsg(socket->descriptor, room->messages.data(), room->most, flags, nullptr);
  if (count <= 0) return count;
  const std::lock_guard<std::mutex> lock(socket->mutex);
  for (int n = 0; n < count; n += 1) {
    msghdr& header = room->messages[n].msg_hdr;
    int64_t at = 0;
    size_t segment = 0;
    for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
      if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_TIMESTAMPNS) {
        timespec stamp = {};
        memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
        at = static_cast<int64_t>(stamp.tv_sec) * 1'000'000'000 + stamp.tv_nsec;
      } else if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) {
        int size = 0;
        memcpy(&size, CMSG_DATA(control), sizeof size);
        segment = static_cast<size_t>(size);
      }
    }
    const uint8_t* bytes = room->bytes.data() + n * room->each;
    const size_t length = room->messages[n].msg_len;
    if (segment == 0 || segment >= length) {
      Count(socket, bytes, length, at);
      continue;
    }
    for (size_t from = 0; from < length; from += segment) Count(socket, bytes + from, length - from < segment ? length - from : segment, at);
  }
  return count;
}

void Empty(Socket* socket, Room* room) {
  while (Take(socket, room, MSG_DONTWAIT) == static_cast<int>(room->most)) {
  }
}

void WaitAtOne(Socket* socket, bool whole) {
  Room room(whole);
  const int flags = fcntl(socket->descriptor, F_GETFL);
  fcntl(socket->descriptor, F_SETFL, flags & ~O_NONBLOCK);
  while (Take(socket, &room, MSG_WAITFORONE) > 0) {
  }
}

void WaitAtAll(std::vector<std::unique_ptr<Socket>>* sockets, bool whole) {
  Room room(whole);
  const int descriptor = epoll_create1(0);
  for (const auto& socket : *sockets) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = socket.get();
    epoll_ctl(descriptor, EPOLL_CTL_ADD, socket->descriptor, &event);
  }
  std::vector<epoll_event> events(sockets->size());
  while (true) {
    const int count = epoll_wait(descriptor, events.data(), static_cast<int>(events.size()), -1);
    for (int n = 0; n < count; n += 1) Empty(static_cast<Socket*>(events[static_cast<size_t>(n)].data.ptr), &room);
  }
}

void Report(std::vector<std::unique_ptr<Socket>>* sockets) {
  // Time stamps of the kernel use the wall clock.
  const int64_t offset = Nanoseconds(CLOCK_MONOTONIC) - Nanoseconds(CLOCK_REALTIME);
  std::string packets;
  std::string arrivals;
  uint64_t lost = 0;
  for (const auto& socket : *sockets) {
    const std::lock_guard<std::mutex> lock(socket->mutex);
    packets += (packets.empty() ? "" : ",") + std::to_string(socket->packets);
    socket->packets = 0;
    for (Flow& flow : socket->flows) {
      if (flow.passed > flow.came) lost += flow.passed - flow.came;
      flow.passed = 0;
      flow.came = 0;
    }
    for (const Arrival& arrival : socket->arrivals) {
      arrivals += (arrivals.empty() ? "[" : ",[") + std::to_string(arrival.timestamp) + "," + std::to_string(arrival.at + offset) + "]";
    }
    socket->arrivals.clear();
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
  printf("{\"packets\":[%s],\"lost\":%llu,\"arrivals\":[%s],\"cpuMs\":%.3f}\n", packets.c_str(), static_cast<unsigned long long>(lost),
         arrivals.c_str(), cpu);
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 6) return 2;
  const bool counts_only = argc == 3;
  const int first = atoi(argv[1]);
  const std::string mode = counts_only ? "clock" : argv[3];
  const bool whole = !counts_only && strcmp(argv[4], "gro") == 0;
  const int telling = counts_only ? 0 : atoi(argv[5]);
  const int one = 1;
  std::vector<std::unique_ptr<Socket>> sockets;
  const int count = atoi(argv[2]);
  for (int n = 0; n < count; n += 1) {
    auto socket = std::make_unique<Socket>();
    socket->descriptor = first + n;
    // Spread over all sockets, because senders have an order.
    socket->tells = telling > 0 && n % (count < telling ? 1 : count / telling) == 0;
    if (setsockopt(first + n, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer) != 0) {
      setsockopt(first + n, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    }
    if (whole) setsockopt(first + n, SOL_UDP, UDP_GRO, &one, sizeof one);
    if (socket->tells) setsockopt(first + n, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    sockets.push_back(std::move(socket));
  }
  Room room(whole);
  if (mode == "wait") std::thread(WaitAtAll, &sockets, whole).detach();
  if (mode == "threads") {
    for (const auto& socket : sockets) std::thread(WaitAtOne, socket.get(), whole).detach();
  }
  const int rest = mode == "clock" ? kRestMs : -1;
  while (true) {
    if (rest >= 0) {
      for (const auto& socket : sockets) Empty(socket.get(), &room);
    }
    pollfd input = {0, POLLIN, 0};
    if (poll(&input, 1, rest) <= 0) continue;
    char line[64];
    if (read(0, line, sizeof line) <= 0) {
      if (counts_only) {
        for (const auto& socket : sockets) {
          Empty(socket.get(), &room);
          printf("%llu\n", static_cast<unsigned long long>(socket->packets));
        }
        fflush(stdout);
      }
      // Waiting threads are not joined.
      _exit(0);
    }
    if (rest >= 0) {
      for (const auto& socket : sockets) Empty(socket.get(), &room);
    }
    Report(&sockets);
  }
}
