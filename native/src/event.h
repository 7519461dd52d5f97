// What the native threads tell JavaScript.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace millrace {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

// Places at which one viewer is heard.
constexpr size_t kPlaces = 16;

enum class EventType : uint32_t {
  // Datagrams of peers that JavaScript judges: `id` is the UDP port's.
  kStun = 0,
  kDtls = 1,
  // Authentic and decrypted: `id` is the viewer's.
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
  // When a packet came, ms of the steady clock.
  double at = 0;
};

// Filled by all threads, emptied by the main thread. What does not fit is dropped and counted.
class EventQueue {
 public:
  explicit EventQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Push(Event event) {
    bool first = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (events_.size() >= kLimit) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      first = events_.empty();
      events_.push_back(std::move(event));
    }
    if (first) wake_();
  }

  std::vector<Event> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Event> taken;
    taken.swap(events_);
    return taken;
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kLimit = 16384;
  std::mutex mutex_;
  std::vector<Event> events_;
  std::atomic<uint64_t> dropped_{0};
  std::function<void()> wake_;
};

}  // namespace millrace
