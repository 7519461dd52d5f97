// One sender thread with the viewers that are its own: nobody else touches them, so nothing is locked while sending.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "batch.h"
#include "viewer.h"

namespace millrace {

struct ShardCounters {
  SendCounters send;
  // Frames given up because the thread fell behind.
  std::atomic<uint64_t> dropped_frames{0};
  std::atomic<uint64_t> resent{0};
  // Losses reported for packets that are no longer in the history.
  std::atomic<uint64_t> too_old{0};
  // Reports of losses left out because the thread fell behind.
  std::atomic<uint64_t> ignored{0};
};

class Shard {
 public:
  Shard(SendMode mode, size_t history, EventQueue* events);
  ~Shard();

  // Commands, from any thread; done in order.
  void OpenSource(uint32_t id, uint32_t clock_rate, double epoch, bool fec);
  void CloseSource(uint32_t id);
  void Push(uint32_t source, FrameRef frame);
  void AddViewer(std::unique_ptr<Viewer> viewer);
  void RemoveViewer(uint32_t id);
  void Connect(uint32_t viewer, int socket, const Address& address);
  void SetKeys(uint32_t viewer, SrtpCipher rtp, SrtpCipher rtcp);
  // Source 0: nothing.
  void Play(uint32_t viewer, size_t slot, uint32_t source);
  void Resend(uint32_t viewer, uint32_t ssrc, std::vector<uint16_t> sequences);
  void SendRtcp(uint32_t viewer, std::vector<uint8_t> packet);

  const ShardCounters& counters() const { return counters_; }

 private:
  using Command = std::function<void()>;
  void Post(Command command);
  void Run();
  int64_t Work(int64_t now);
  void SendEarlier(SourceQueue* source, uint64_t order, int64_t now);
  void SendSlice(SourceQueue* source, int64_t now);
  void Promote(SourceQueue* source, const Frame& frame);
  void SendPackets(Viewer* viewer, Slot* slot, const SourceQueue* source, const Frame& frame, size_t first, size_t last);
  size_t SendPacket(Viewer* viewer, Slot* slot, const Frame& frame, size_t packet, uint64_t index, bool again);
  size_t WriteBody(const Slot& slot, const Frame& frame, size_t packet, uint64_t index, uint8_t* at) const;
  void Remember(SourceQueue* source, const FrameRef& frame);
  void ResendNow(Viewer* viewer, uint32_t ssrc, const std::vector<uint16_t>& sequences);
  void Report(Viewer* viewer, int64_t now);
  void SendRtcpNow(Viewer* viewer, const uint8_t* packet, size_t length);
  void HandOverTcp(Viewer* viewer);
  void Detach(Slot* slot);
  void Forget(SourceQueue* source);
  Viewer* FindViewer(uint32_t id);
  SourceQueue* FindSource(uint32_t id);

  const size_t history_;
  EventQueue* const events_;
  ShardCounters counters_;
  Batch batch_;
  std::unordered_map<uint32_t, std::unique_ptr<SourceQueue>> sources_;
  std::unordered_map<uint32_t, std::unique_ptr<Viewer>> viewers_;
  uint32_t send_time_ = 0;
  // The moment of `send_time_`.
  int64_t sending_at_ = 0;
  int64_t next_report_sweep_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace millrace
