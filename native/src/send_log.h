// Departure times and sizes of the packets of one viewer, by transport-wide sequence number.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace millrace {

// Written by the viewer's sender thread, read by the main thread. An entry is one word, so no read sees half of it.
class SendLog {
 public:
  void Write(uint16_t sequence, size_t length, int64_t at_us) {
    const uint64_t entry = static_cast<uint64_t>(sequence) << 48 | static_cast<uint64_t>(length & 0xffff) << 32 |
                           (static_cast<uint64_t>(at_us) & 0xffffffff);
    entries_[sequence % kMaxEntries].store(entry, std::memory_order_relaxed);
  }

  // Size and time (32 bits of microseconds) of the packet with this number; 0 bytes if it is unknown or overwritten.
  uint32_t Read(uint16_t sequence, uint32_t* at_us) const {
    const uint64_t entry = entries_[sequence % kMaxEntries].load(std::memory_order_relaxed);
    if (entry >> 48 != sequence) return 0;
    *at_us = static_cast<uint32_t>(entry);
    return static_cast<uint32_t>(entry >> 32) & 0xffff;
  }

 private:
  // One second at 10 Mbit/s.
  static constexpr size_t kMaxEntries = 1024;
  std::array<std::atomic<uint64_t>, kMaxEntries> entries_{};
};

}  // namespace millrace
