#include "receiver.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bytes.h"

namespace millrace {
namespace {

constexpr unsigned int kMaxDatagrams = 32;
constexpr size_t kDatagramRoom = 2048;
// Batches read from one socket before the next socket's turn.
constexpr int kMaxReadRounds = 8;
// Limit of losses handled from one feedback packet.
constexpr size_t kMaxLosses = 512;
// Limit of waiting bytes of one viewer over TCP: more than a second of a publisher of 10 Mbit/s.
constexpr size_t kMaxInjected = 2 << 20;
constexpr uint8_t kTransportFeedback = 205;
constexpr uint8_t kGenericNack = 1;

std::string PlaceOf(uint32_t socket, const Address& address) {
  std::string place(reinterpret_cast<const char*>(&socket), sizeof socket);
  if (address.storage.ss_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    place.append(reinterpret_cast<const char*>(&six->sin6_port), sizeof six->sin6_port);
    place.append(reinterpret_cast<const char*>(&six->sin6_addr), sizeof six->sin6_addr);
    place.append(reinterpret_cast<const char*>(&six->sin6_scope_id), sizeof six->sin6_scope_id);
  } else {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&address.storage);
    place.append(reinterpret_cast<const char*>(&four->sin_port), sizeof four->sin_port);
    place.append(reinterpret_cast<const char*>(&four->sin_addr), sizeof four->sin_addr);
  }
  return place;
}

double SteadyMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool IsRtcp(const uint8_t* data, size_t length) { return length >= 2 && data[1] >= 192 && data[1] <= 223; }

}  // namespace

Receiver::Receiver(EventQueue* events)
    : events_(events), buffers_(kMaxDatagrams * kDatagramRoom), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), thread_([this] { Run(); }) {}

Receiver::~Receiver() {
  Post([this] { stopping_ = true; });
  thread_.join();
  close(wake_);
}

void Receiver::Post(Command command) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    inbox_.push_back(std::move(command));
  }
  const uint64_t one = 1;
  // The write fails only when the counter is at its limit, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

void Receiver::AddSocket(uint32_t id, int socket) {
  Post([this, id, socket] { sockets_.push_back({id, socket}); });
}

void Receiver::AddViewer(uint32_t id, Shard* shard, std::shared_ptr<ViewerCounters> counters, std::unique_ptr<SrtpReceiver> keys) {
  auto shared = std::make_shared<std::unique_ptr<SrtpReceiver>>(std::move(keys));
  Post([this, id, shard, counters, shared] {
    const auto found = peers_.find(id);
    if (found != peers_.end()) {
      found->second.keys = std::move(*shared);
      return;
    }
    peers_.emplace(id, Peer{shard, counters, std::move(*shared), {}});
  });
}

void Receiver::RemoveViewer(uint32_t id) {
  Post([this, id] {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    for (const std::string& place : found->second.places) Forget(id, place);
    peers_.erase(found);
  });
}

void Receiver::Hear(uint32_t viewer, uint32_t socket_id, const Address& address) {
  Post([this, viewer, socket_id, address] {
    const auto found = peers_.find(viewer);
    if (found == peers_.end()) return;
    std::vector<std::string>& places = found->second.places;
    const std::string place = PlaceOf(socket_id, address);
    // Moves an address that was there already to the end.
    places.erase(std::remove(places.begin(), places.end(), place), places.end());
    if (places.size() >= kMaxPlaces) {
      Forget(viewer, places.front());
      places.erase(places.begin());
    }
    places.push_back(place);
    places_[place] = viewer;
  });
}

// Another viewer may use the address by now.
void Receiver::Forget(uint32_t viewer, const std::string& place) {
  const auto found = places_.find(place);
  if (found != places_.end() && found->second == viewer) places_.erase(found);
}

void Receiver::Inject(uint32_t viewer, std::shared_ptr<ViewerCounters> counters, std::string packet) {
  // Peers decide how many of these packets come.
  if (counters->injected.load(std::memory_order_relaxed) >= kMaxInjected) {
    counters_.dropped_injected.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  counters->injected.fetch_add(packet.size(), std::memory_order_relaxed);
  Post([this, viewer, counters = std::move(counters), packet = std::move(packet)]() mutable {
    counters->injected.fetch_sub(packet.size(), std::memory_order_relaxed);
    const auto found = peers_.find(viewer);
    if (found == peers_.end()) return;
    arrived_ = SteadyMs();
    Protected(viewer, &found->second, reinterpret_cast<uint8_t*>(packet.data()), packet.size());
  });
}

void Receiver::Run() {
  // The name shown by `top -H`.
  pthread_setname_np(pthread_self(), "webrtc-receive");
  std::vector<Command> commands;
  std::vector<pollfd> descriptors;
  while (!stopping_) {
    descriptors.clear();
    descriptors.push_back({wake_, POLLIN, 0});
    for (const Socket& socket : sockets_) descriptors.push_back({socket.descriptor, POLLIN, 0});
    poll(descriptors.data(), descriptors.size(), -1);
    if ((descriptors[0].revents & POLLIN) != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t taken = read(wake_, &count, sizeof count);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        commands.swap(inbox_);
      }
      for (Command& command : commands) command();
      commands.clear();
    }
    for (size_t n = 1; n < descriptors.size(); n += 1) {
      // Errors of earlier sends (ICMP) are cleared by reading the socket.
      if (descriptors[n].revents != 0) Read(sockets_[n - 1]);
    }
  }
}

void Receiver::Read(const Socket& socket) {
  mmsghdr messages[kMaxDatagrams];
  iovec vectors[kMaxDatagrams];
  sockaddr_storage names[kMaxDatagrams];
  for (int round = 0; round < kMaxReadRounds; round += 1) {
    for (unsigned int n = 0; n < kMaxDatagrams; n += 1) {
      vectors[n] = {buffers_.data() + n * kDatagramRoom, kDatagramRoom};
      messages[n].msg_hdr = {};
      messages[n].msg_hdr.msg_name = &names[n];
      messages[n].msg_hdr.msg_namelen = sizeof names[n];
      messages[n].msg_hdr.msg_iov = &vectors[n];
      messages[n].msg_hdr.msg_iovlen = 1;
    }
    const int count = recvmmsg(socket.descriptor, messages, kMaxDatagrams, MSG_DONTWAIT, nullptr);
    if (count <= 0) return;
    arrived_ = SteadyMs();
    for (int n = 0; n < count; n += 1) {
      counters_.datagrams.fetch_add(1, std::memory_order_relaxed);
      if ((messages[n].msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
      Address from;
      from.storage = names[n];
      from.length = messages[n].msg_hdr.msg_namelen;
      Sort(socket, from, static_cast<uint8_t*>(vectors[n].iov_base), messages[n].msg_len);
    }
    if (count < static_cast<int>(kMaxDatagrams)) return;
  }
}

void Receiver::Sort(const Socket& socket, const Address& from, uint8_t* data, size_t length) {
  if (length == 0) return;
  // A datagram from port 0 cannot be answered.
  const uint8_t first = PortOf(from) == 0 ? 0xff : data[0];
  if (first <= 3 || (first >= 20 && first <= 63)) {
    const EventType type = first <= 3 ? EventType::kStun : EventType::kDtls;
    // Checks of connected peers keep their sessions alive, so they are not queued with the checks of unknown peers.
    const auto known = places_.find(PlaceOf(socket.id, from));
    const uint32_t owner = known == places_.end() ? kStranger : known->second;
    events_->Push({type, socket.id, from, std::string(reinterpret_cast<char*>(data), length)}, owner);
    return;
  }
  if (first >= 128 && first <= 191) {
    const auto place = places_.find(PlaceOf(socket.id, from));
    if (place != places_.end()) {
      const auto peer = peers_.find(place->second);
      if (peer != peers_.end()) {
        Protected(peer->first, &peer->second, data, length);
        return;
      }
    }
  }
  counters_.strangers.fetch_add(1, std::memory_order_relaxed);
}

void Receiver::Protected(uint32_t viewer, Peer* peer, uint8_t* data, size_t length) {
  if (!peer->keys) return;
  const bool rtcp = IsRtcp(data, length);
  size_t plain = 0;
  const Unprotected result = rtcp ? peer->keys->Rtcp(data, length, &plain) : peer->keys->Rtp(data, length, &plain);
  if (result != Unprotected::kOk) {
    peer->counters->refused.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  peer->counters->received.fetch_add(1, std::memory_order_relaxed);
  if (rtcp && !ServeFeedback(viewer, peer, data, plain)) return;
  events_->Push({rtcp ? EventType::kRtcp : EventType::kRtp, viewer, {}, std::string(reinterpret_cast<char*>(data), plain), arrived_},
                viewer);
}

bool Receiver::ServeFeedback(uint32_t viewer, Peer* peer, const uint8_t* data, size_t length) {
  bool other = false;
  size_t at = 0;
  while (at + 4 <= length) {
    const size_t end = at + 4 * (static_cast<size_t>(Read16(data + at + 2)) + 1);
    if (end > length) return true;
    const bool nack = data[at + 1] == kTransportFeedback && (data[at] & 0x1f) == kGenericNack && end - at >= 12;
    if (!nack) {
      other = true;
      at = end;
      continue;
    }
    counters_.nacks.fetch_add(1, std::memory_order_relaxed);
    std::vector<uint16_t> lost;
    for (size_t item = at + 12; item + 4 <= end && lost.size() < kMaxLosses; item += 4) {
      const uint16_t sequence = Read16(data + item);
      const uint16_t mask = Read16(data + item + 2);
      lost.push_back(sequence);
      for (int bit = 0; bit < 16; bit += 1)
        if ((mask >> bit & 1) != 0) lost.push_back(static_cast<uint16_t>(sequence + bit + 1));
    }
    peer->counters->nacked.fetch_add(lost.size(), std::memory_order_relaxed);
    if (!lost.empty()) peer->shard->Resend(viewer, Read32(data + at + 8), std::move(lost));
    at = end;
  }
  return other;
}

}  // namespace millrace
