// Viewers of the bench `llhls-crowd`, in one thread. Each has a connection, requests the playlist with the next part (blocking, with gzip),
// then that part, as hls.js does. The first viewer, the leader, requests playlists without gzip and reads them for all.
//
// Arguments: port, number of viewers, path and query of the playlist, its newest media sequence number and newest part, seconds.
//
// The delay counts from the end of a part by the times of the playlist (when the encoder had to send the last frame) to the arrival of the
// last byte by the kernel's time stamp, so the shared processor of the viewers is not counted as a delay of the server.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr size_t kBuffer = 1 << 20;
constexpr int kEventsAtOnce = 512;
// Viewers that connected while others were still connecting are not measured.
constexpr int64_t kSettleMs = 2000;
constexpr long kAddresses = 250;
constexpr size_t kPartsBehind = 4;
constexpr size_t kMaxHead = 16 << 10;

int64_t NowUs() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

struct Position {
  long sequence = 0;
  long part = 0;
  bool operator<(const Position& other) const { return sequence != other.sequence ? sequence < other.sequence : part < other.part; }
};

// A part of some playlist, and the viewers' next request.
struct Part {
  Position position;
  std::string url;
  // Wall clock, us.
  int64_t end = 0;
};

struct Viewer {
  int socket = -1;
  bool waits_for_part = false;
  // Index of the wanted part in the list of all parts.
  size_t index = 0;
  // Beginning of an incomplete answer head.
  std::string head;
  // Remaining bytes of the body; negative before the head.
  int64_t rest = -1;
  // Body of the leader's playlists.
  std::string body;
};

struct Lateness {
  std::vector<float> playlist;
  std::vector<float> part;
};

class Crowd {
 public:
  Crowd(int port, size_t viewers, std::string playlist, Position newest) : port_(port), playlist_(std::move(playlist)), newest_(newest) {
    viewers_.resize(viewers);
    buffer_.resize(kBuffer);
    folder_ = playlist_.substr(0, playlist_.find('?'));
    folder_ = folder_.substr(0, folder_.rfind('/') + 1);
    asked_.push_back({newest.sequence, newest.part + 1});
  }

  bool Open() {
    epoll_ = epoll_create1(0);
    for (Viewer& viewer : viewers_) {
      viewer.socket = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port_));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      // The server limits the viewers of an address, so the viewers come from 250 addresses.
      sockaddr_in own = {};
      own.sin_family = AF_INET;
      own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + static_cast<uint32_t>((&viewer - viewers_.data()) % kAddresses));
      const int on = 1;
      setsockopt(viewer.socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
      if (viewer.socket < 0 || bind(viewer.socket, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 || connect(viewer.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        perror("connect");
        return false;
      }
      setsockopt(viewer.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(viewer.socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.ptr = &viewer;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, viewer.socket, &event);
      viewer.index = parts_.size();
      AskForPlaylist(&viewer);
      // Serves connected viewers meanwhile.
      Turn(0);
    }
    return true;
  }

  void Run(int64_t ms) {
    const int64_t until = NowUs() + ms * 1000;
    while (true) {
      const int64_t left = (until - NowUs() + 999) / 1000;
      if (left <= 0) return;
      Turn(static_cast<int>(left));
    }
  }

  void Forget() { late_ = {}; }

  void Report() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const auto cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    std::string failures;
    for (const auto& [reason, count] : failures_) failures += (failures.empty() ? "\"" : ",\"") + reason + "\":" + std::to_string(count);
    printf("{\"playlists\":%zu,\"parts\":%zu,\"failures\":{%s},\"behind\":%zu,\"bytes\":%llu,\"cpuMs\":%.0f,\"lateness\":{\"playlist\":%s,\"part\":%s}}\n",
           late_.playlist.size(), late_.part.size(), failures.c_str(), Behind(), static_cast<unsigned long long>(bytes_), cpu,
           Summary(&late_.playlist).c_str(), Summary(&late_.part).c_str());
  }

 private:
  // Number of viewers that wait for a part which others received long ago.
  size_t Behind() const {
    return static_cast<size_t>(std::count_if(viewers_.begin(), viewers_.end(), [&](const Viewer& viewer) {
      return viewer.socket >= 0 && viewer.index + kPartsBehind < parts_.size();
    }));
  }

  static std::string Summary(std::vector<float>* values) {
    if (values->empty()) return "{\"p50\":null,\"p99\":null,\"max\":null}";
    std::sort(values->begin(), values->end());
    const auto at = [&](double share) { return static_cast<double>((*values)[static_cast<size_t>(share * static_cast<double>(values->size() - 1))]); };
    char text[128];
    snprintf(text, sizeof text, "{\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}", at(0.5), at(0.99), at(1));
    return text;
  }

  void Turn(int timeout) {
    epoll_event events[kEventsAtOnce];
    const int count = epoll_wait(epoll_, events, kEventsAtOnce, timeout);
    for (int n = 0; n < count; n += 1) Read(static_cast<Viewer*>(events[n].data.ptr));
  }

  bool Leads(const Viewer* viewer) const { return viewer == &viewers_.front(); }

  void AskForPlaylist(Viewer* viewer) {
    const Position& next = asked_[viewer->index];
    std::string target = playlist_;
    target += playlist_.find('?') == std::string::npos ? '?' : '&';
    target += "_HLS_msn=" + std::to_string(next.sequence) + "&_HLS_part=" + std::to_string(next.part);
    viewer->waits_for_part = false;
    Ask(viewer, target);
  }

  void AskForPart(Viewer* viewer) {
    viewer->waits_for_part = true;
    Ask(viewer, parts_[viewer->index].url);
  }

  void Ask(Viewer* viewer, const std::string& target) {
    request_ = "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n";
    if (!Leads(viewer)) request_ += "Accept-Encoding: gzip, deflate, br\r\n";
    request_ += "\r\n";
    if (send(viewer->socket, request_.data(), request_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request_.size())) Fail(viewer, "not sent");
  }

  void Fail(Viewer* viewer, const std::string& reason) {
    if (viewer->socket < 0) return;
    failures_[reason] += 1;
    close(viewer->socket);
    viewer->socket = -1;
  }

  void Read(Viewer* viewer) {
    if (viewer->socket < 0) return;
    alignas(cmsghdr) char control[128];
    iovec vector = {buffer_.data(), buffer_.size()};
    msghdr message = {};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(viewer->socket, &message, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return Fail(viewer, count == 0 ? "closed" : strerror(errno));
    bytes_ += static_cast<uint64_t>(count);
    int64_t at = 0;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_TIMESTAMPNS) continue;
      timespec stamp = {};
      memcpy(&stamp, CMSG_DATA(each), sizeof stamp);
      at = static_cast<int64_t>(stamp.tv_sec) * 1'000'000 + stamp.tv_nsec / 1000;
    }
    Take(viewer, {buffer_.data(), static_cast<size_t>(count)}, at != 0 ? at : NowUs());
  }

  void Take(Viewer* viewer, std::string_view bytes, int64_t at) {
    if (viewer->rest < 0) {
      viewer->head += bytes;
      const size_t end = viewer->head.find("\r\n\r\n");
      if (end == std::string::npos) {
        if (viewer->head.size() > kMaxHead) Fail(viewer, "a head without end");
        return;
      }
      if (viewer->head.compare(0, 12, "HTTP/1.1 200") != 0) {
        return Fail(viewer, viewer->head.substr(0, viewer->head.find('\r')) + (viewer->waits_for_part ? " for a part" : " for a playlist"));
      }
      viewer->rest = ContentLength(viewer->head, end);
      if (viewer->rest < 0) return Fail(viewer, "no length");
      bytes.remove_prefix(bytes.size() - (viewer->head.size() - (end + 4)));
      viewer->head.clear();
    }
    if (Leads(viewer) && !viewer->waits_for_part) viewer->body += bytes;
    viewer->rest -= static_cast<int64_t>(bytes.size());
    // More bytes than one answer are an error.
    if (viewer->rest < 0) return Fail(viewer, "more than was requested");
    if (viewer->rest > 0) return;
    viewer->rest = -1;
    if (viewer->waits_for_part) {
      OnPart(viewer, at);
    } else {
      OnPlaylist(viewer, at);
    }
  }

  static int64_t ContentLength(const std::string& head, size_t end) {
    constexpr std::string_view kName = "\r\ncontent-length:";
    for (size_t from = head.find("\r\n"); from < end; from = head.find("\r\n", from + 2)) {
      if (strncasecmp(head.c_str() + from, kName.data(), kName.size()) == 0) return atoll(head.c_str() + from + kName.size());
    }
    return -1;
  }

  void OnPlaylist(Viewer* viewer, int64_t at) {
    if (Leads(viewer)) {
      Learn(viewer->body);
      viewer->body.clear();
      if (viewer->index >= parts_.size()) return Fail(viewer, "a playlist without the part");
      std::vector<Early> early;
      early.swap(early_);
      for (const Early& other : early) GoOn(other.viewer, other.at);
    }
    GoOn(viewer, at);
  }

  // Requests the part in the viewer's playlist as soon as the leader has read it.
  void GoOn(Viewer* viewer, int64_t at) {
    if (viewer->index >= parts_.size()) {
      early_.push_back({viewer, at});
      return;
    }
    Note(&late_.playlist, viewer, at);
    AskForPart(viewer);
  }

  void OnPart(Viewer* viewer, int64_t at) {
    Note(&late_.part, viewer, at);
    viewer->index += 1;
    AskForPlaylist(viewer);
  }

  void Note(std::vector<float>* values, const Viewer* viewer, int64_t at) {
    values->push_back(static_cast<float>(at - parts_[viewer->index].end) / 1000);
  }

  // Appends new parts of a playlist.
  void Learn(const std::string& text) {
    long sequence = 0;
    long index = 0;
    double end = NAN;
    for (size_t from = 0; from < text.size();) {
      const size_t to = std::min(text.find('\n', from), text.size());
      const std::string line = text.substr(from, to - from);
      from = to + 1;
      if (line.rfind("#EXT-X-MEDIA-SEQUENCE:", 0) == 0) {
        sequence = atol(line.c_str() + line.find(':') + 1);
      } else if (line.rfind("#EXT-X-PROGRAM-DATE-TIME:", 0) == 0) {
        end = WallClock(line.substr(line.find(':') + 1));
      } else if (line.rfind("#EXT-X-PART:", 0) == 0) {
        end += atof(Attribute(line, "DURATION=").c_str());
        Add({{sequence, index}, Resolve(Attribute(line, "URI=\"")), static_cast<int64_t>(end * 1e6)});
        index += 1;
      } else if (!line.empty() && line[0] != '#') {
        sequence += 1;
        index = 0;
      }
    }
    asked_.resize(parts_.size());
    asked_.push_back({sequence, index});
  }

  void Add(Part part) {
    if (!(newest_ < part.position)) return;
    newest_ = part.position;
    // If a playlist lists several new parts, the viewers have requested the first one already.
    if (asked_.size() <= parts_.size()) asked_.push_back(part.position);
    parts_.push_back(std::move(part));
  }

  static std::string Attribute(const std::string& line, const char* name) {
    const size_t at = line.find(name);
    if (at == std::string::npos) return "";
    const size_t from = at + strlen(name);
    return line.substr(from, std::min(line.find_first_of("\",", from), line.size()) - from);
  }

  std::string Resolve(const std::string& uri) const { return uri.rfind('/', 0) == 0 ? uri : folder_ + uri; }

  // Parses ISO 8601 with milliseconds and a zone as `Z` or an offset; seconds.
  static double WallClock(const std::string& text) {
    tm parts = {};
    const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == nullptr) return NAN;
    auto seconds = static_cast<double>(timegm(&parts));
    char* zone = nullptr;
    if (*rest == '.') {
      seconds += strtod(rest, &zone);
      rest = zone;
    }
    int hours = 0;
    int minutes = 0;
    if ((*rest == '+' || *rest == '-') && sscanf(rest + 1, "%2d:%2d", &hours, &minutes) >= 1) {
      seconds -= (*rest == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    }
    return seconds;
  }

  struct Early {
    Viewer* viewer;
    int64_t at;
  };

  int port_;
  std::string playlist_;
  std::string folder_;
  // The newest part known to the leader.
  Position newest_;
  int epoll_ = -1;
  std::vector<Viewer> viewers_;
  std::vector<char> buffer_;
  std::string request_;
  std::vector<Part> parts_;
  // Requests for the parts of the same indices; one more than parts.
  std::vector<Position> asked_;
  std::vector<Early> early_;
  Lateness late_;
  std::map<std::string, uint64_t> failures_;
  uint64_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: llhls-viewers PORT VIEWERS PLAYLIST SEQUENCE PART SECONDS\n");
    return 2;
  }
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Crowd crowd(atoi(argv[1]), static_cast<size_t>(std::max(1, atoi(argv[2]))), argv[3], {atol(argv[4]), atol(argv[5])});
  if (!crowd.Open()) return 1;
  crowd.Run(kSettleMs);
  crowd.Forget();
  crowd.Run(atol(argv[6]) * 1000);
  crowd.Report();
  return 0;
}
