// Writes the packets of viewers, protects them and hands them to the socket: media, retransmissions, reports. Belongs to one sender thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "batch.h"
#include "viewer.h"

namespace millrace {

// Written by one sender thread, read by all threads.
struct ThreadCounters {
  SendCounters send;
  // Frames given up because the thread fell behind.
  std::atomic<uint64_t> dropped_frames{0};
  std::atomic<uint64_t> resent{0};
  // Losses reported for packets that are no longer in the history.
  std::atomic<uint64_t> too_old{0};
  // Loss reports dropped because the thread fell behind.
  std::atomic<uint64_t> ignored{0};
};

// Microseconds of the monotonic clock.
int64_t NowUs();

class PacketSender {
 public:
  // `history`: number of packets of each source that can be sent again.
  PacketSender(SendMode mode, size_t history, ThreadCounters* counters, EventQueue* events);

  // Departure time of the next packets, on the clock of `NowUs`.
  void SetTime(int64_t now);
  // From now on packets of the frame can be retransmitted.
  void Remember(SourceQueue* source, const FrameRef& frame);
  // Sends packets `first` to `last`, without `last`; the parities of the frame follow its last packet.
  void SendPackets(Viewer* viewer, Slot* slot, const SourceQueue* source, const Frame& frame, size_t first, size_t last);
  // Resends packets that a viewer has reported lost.
  void Resend(Viewer* viewer, uint32_t ssrc, const std::vector<uint16_t>& sequences);
  void Report(Viewer* viewer, int64_t now);
  void SendRtcp(Viewer* viewer, const uint8_t* packet, size_t length);
  // Sends all waiting datagrams. Required before a viewer is removed, because they refer to it.
  void Flush() { batch_.Flush(); }

 private:
  size_t SendPacket(Viewer* viewer, Slot* slot, const Frame& frame, size_t packet, uint64_t index, bool again);
  size_t WriteBody(const Slot& slot, const Frame& frame, size_t packet, uint64_t index, uint8_t* at) const;
  void HandOverTcp(Viewer* viewer);

  const size_t history_;
  ThreadCounters* const counters_;
  EventQueue* const events_;
  Batch batch_;
  uint32_t send_time_ = 0;
  // Time that `send_time_` stands for.
  int64_t sending_at_ = 0;
};

}  // namespace millrace
