// Events of the native threads for JavaScript.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "address.h"

namespace millrace {

// Limit of addresses from which one viewer may send.
constexpr size_t kMaxPlaces = 16;

enum class EventType : uint32_t {
  // Datagrams that JavaScript judges; `id` is the UDP port's.
  kStun = 0,
  kDtls = 1,
  // Authentic, decrypted packets; `id` is the viewer's.
  kRtcp = 2,
  kRtp = 3,
  // Frames after RFC 4571 for a viewer that is reached over TCP.
  kTcp = 4,
};

struct Event {
  EventType type;
  uint32_t id;
  Address from;
  std::string bytes;
  // Arrival time of the packet, ms of the steady clock.
  double at = 0;
};

// In place of a viewer's id: a peer that has not authenticated itself.
constexpr uint32_t kStranger = 0;

// Filled by all threads, emptied by the main thread. Surplus events are dropped and counted. Unknown peers share one limit and each viewer
// has its own limit, so a flood displaces only the events of its sender.
class EventQueue {
 public:
  explicit EventQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // `owner`: the viewer whose limit applies, or kStranger.
  void Push(Event event, uint32_t owner) {
    bool first = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      size_t& own = waiting_[owner];
      const size_t others = events_.size() - strangers_;
      if (owner == kStranger ? own >= kMaxStrangers : own >= (others < kMaxEvents / 2 ? kMaxShare : kMaxShareWhenShort) || others >= kMaxEvents) {
        (owner == kStranger ? dropped_strangers_ : dropped_).fetch_add(1, std::memory_order_relaxed);
        return;
      }
      first = events_.empty();
      own += 1;
      if (owner == kStranger) strangers_ += 1;
      events_.push_back(std::move(event));
    }
    if (first) wake_();
  }

  std::vector<Event> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Event> taken;
    taken.swap(events_);
    waiting_.clear();
    strangers_ = 0;
    return taken;
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  uint64_t dropped_strangers() const { return dropped_strangers_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMaxEvents = 32768;
  // Limits for one viewer: two seconds of a publisher of 10 Mbit/s, and a quarter of a second while the queue is nearly full.
  static constexpr size_t kMaxShare = 2048;
  static constexpr size_t kMaxShareWhenShort = 256;
  // Limit for unknown peers: about 100 ms of connectivity checks and handshakes.
  static constexpr size_t kMaxStrangers = 2048;
  std::mutex mutex_;
  std::vector<Event> events_;
  // Events by owner.
  std::unordered_map<uint32_t, size_t> waiting_;
  size_t strangers_ = 0;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> dropped_strangers_{0};
  std::function<void()> wake_;
};

}  // namespace millrace
