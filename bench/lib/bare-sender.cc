// Yardstick of the WebRTC benches: sends packets of the same sizes at the same times to the same sockets, without protection.
// Arguments: way, threads, seconds, bytes of a video packet, of an audio packet, packets of a frame, of a keyframe. Standard input has an
// IPv4 address and a port on each line. Prints one line of JSON: datagrams that the system took and refused, CPU of the process in ms, and
// the due time of the first frame, ns of the monotonic clock.
//
//   gso     a run of packets is one message that the kernel splits (UDP_SEGMENT), up to 64 messages a call
//   mmsg    a message for each packet, up to 64 a call
//   sendto  a call for each packet
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace {

constexpr unsigned kMessages = 64;
constexpr size_t kRun = 50;
constexpr size_t kPacketRoom = 1500;
constexpr int kSocketBuffer = 8 << 20;
constexpr int64_t kFrameNs = 1'000'000'000 / 30;
constexpr int64_t kAudioNs = 20'000'000;
constexpr int kGop = 60;

struct Plan {
  std::string way;
  double seconds;
  size_t video;
  size_t audio;
  size_t frame;
  size_t keyframe;
};

struct Viewer {
  sockaddr_in address;
  uint16_t sequence[2];
};

std::atomic<uint64_t> taken{0};
std::atomic<uint64_t> refused{0};

class Sender {
 public:
  Sender(const Plan& plan, std::vector<Viewer> viewers) : plan_(plan), viewers_(std::move(viewers)) {
    socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer);
    arena_.resize(kMessages * kRun * kPacketRoom);
    payload_.resize(kPacketRoom, 7);
  }

  void Run(int64_t start) {
    const int64_t end = start + static_cast<int64_t>(plan_.seconds * 1e9);
    int64_t frames = 0;
    int64_t packets = 0;
    while (true) {
      const int64_t video_due = start + frames * kFrameNs;
      const int64_t audio_due = start + packets * kAudioNs;
      const int64_t due = video_due < audio_due ? video_due : audio_due;
      if (due >= end) return;
      const timespec until = {due / 1'000'000'000, due % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      if (video_due <= audio_due) {
        Send(0, frames % kGop == 0 ? plan_.keyframe : plan_.frame, plan_.video, static_cast<uint32_t>(frames * 3000));
        frames += 1;
      } else {
        Send(1, 1, plan_.audio, static_cast<uint32_t>(packets * 960));
        packets += 1;
      }
    }
  }

 private:
  void Send(int stream, size_t packets, size_t length, uint32_t timestamp) {
    const size_t most = plan_.way == "gso" ? kRun : 1;
    for (Viewer& viewer : viewers_) {
      for (size_t first = 0; first < packets; first += most) {
        const size_t run = packets - first < most ? packets - first : most;
        if (messages_ == kMessages) Flush();
        uint8_t* at = arena_.data() + used_;
        used_ += run * length;
        for (size_t n = 0; n < run; n += 1) Write(at + n * length, stream, length, timestamp, &viewer, first + n + 1 == packets);
        Add(&viewer, at, run, length);
        if (plan_.way == "sendto") Flush();
      }
    }
    Flush();
  }

  void Write(uint8_t* at, int stream, size_t length, uint32_t timestamp, Viewer* viewer, bool last) {
    memcpy(at, payload_.data(), length);
    at[0] = 0x80;
    at[1] = static_cast<uint8_t>(96 + stream + (last && stream == 0 ? 128 : 0));
    const uint16_t sequence = htons(viewer->sequence[stream]);
    const uint32_t words[2] = {htonl(timestamp), htonl(0xba5e0000U + static_cast<uint32_t>(stream))};
    memcpy(at + 2, &sequence, sizeof sequence);
    memcpy(at + 4, words, sizeof words);
    viewer->sequence[stream] = static_cast<uint16_t>(viewer->sequence[stream] + 1);
  }

  void Add(Viewer* viewer, uint8_t* at, size_t run, size_t length) {
    vectors_[messages_] = {at, run * length};
    counts_[messages_] = run;
    msghdr& header = headers_[messages_].msg_hdr;
    header = {};
    header.msg_name = &viewer->address;
    header.msg_namelen = sizeof viewer->address;
    header.msg_iov = &vectors_[messages_];
    header.msg_iovlen = 1;
    if (run > 1) {
      header.msg_control = controls_[messages_];
      header.msg_controllen = sizeof controls_[messages_];
      cmsghdr* control = CMSG_FIRSTHDR(&header);
      control->cmsg_level = SOL_UDP;
      control->cmsg_type = UDP_SEGMENT;
      control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const auto segment = static_cast<uint16_t>(length);
      memcpy(CMSG_DATA(control), &segment, sizeof segment);
    }
    messages_ += 1;
  }

  void Flush() {
    for (unsigned at = 0; at < messages_;) {
      const int sent = plan_.way == "sendto" ? (sendto(socket_, vectors_[at].iov_base, vectors_[at].iov_len, 0,
                                                       static_cast<const sockaddr*>(headers_[at].msg_hdr.msg_name), sizeof(sockaddr_in)) < 0
                                                    ? -1
                                                    : 1)
                                             : sendmmsg(socket_, headers_ + at, messages_ - at, 0);
      for (int n = 0; n < sent; n += 1) taken += counts_[at + static_cast<unsigned>(n)];
      if (sent < 0) refused += counts_[at];
      at += sent < 0 ? 1 : static_cast<unsigned>(sent);
    }
    messages_ = 0;
    used_ = 0;
  }

  const Plan plan_;
  std::vector<Viewer> viewers_;
  int socket_;
  unsigned messages_ = 0;
  size_t used_ = 0;
  std::vector<uint8_t> arena_;
  std::vector<uint8_t> payload_;
  iovec vectors_[kMessages] = {};
  mmsghdr headers_[kMessages] = {};
  size_t counts_[kMessages] = {};
  alignas(cmsghdr) uint8_t controls_[kMessages][CMSG_SPACE(sizeof(uint16_t))] = {};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto threads = static_cast<size_t>(atoi(argv[2]));
  const auto number = [&](int n) { return static_cast<size_t>(atoi(argv[n])); };
  const Plan plan = {argv[1], atof(argv[3]), number(4), number(5), number(6), number(7)};
  std::vector<std::vector<Viewer>> shares(threads);
  char host[64];
  unsigned port = 0;
  for (size_t n = 0; scanf("%63s %u", host, &port) == 2; n += 1) {
    Viewer viewer = {};
    viewer.address.sin_family = AF_INET;
    viewer.address.sin_port = htons(static_cast<uint16_t>(port));
    if (inet_pton(AF_INET, host, &viewer.address.sin_addr) != 1) return 2;
    shares[n % threads].push_back(viewer);
  }
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t start = static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec + 50'000'000;
  std::vector<std::thread> running;
  for (const auto& share : shares) {
    running.emplace_back([&plan, &share, start] {
      Sender sender(plan, share);
      sender.Run(start);
    });
  }
  for (std::thread& thread : running) thread.join();
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
  printf("{\"sent\":%llu,\"refused\":%llu,\"cpuMs\":%.3f,\"startNs\":%lld}\n", static_cast<unsigned long long>(taken),
         static_cast<unsigned long long>(refused), cpu, static_cast<long long>(start));
  return 0;
}
