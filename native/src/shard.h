// One sender thread and its viewers: no other thread touches them, so nothing is locked while sending.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "packet_sender.h"

namespace millrace {

class Shard {
 public:
  Shard(SendMode mode, size_t history, EventQueue* events);
  ~Shard();

  // Commands: called from any thread, executed in order.
  void OpenSource(uint32_t id, uint32_t clock_rate, double epoch, bool fec);
  void CloseSource(uint32_t id);
  void Push(uint32_t source, FrameRef frame);
  void AddViewer(std::unique_ptr<Viewer> viewer);
  void RemoveViewer(uint32_t id);
  void Connect(uint32_t viewer, int socket, const Address& address);
  void SetKeys(uint32_t viewer, SrtpCipher rtp, SrtpCipher rtcp);
  // Source 0: the slot plays nothing.
  void Play(uint32_t viewer, size_t slot, uint32_t source);
  void Resend(uint32_t viewer, uint32_t ssrc, std::vector<uint16_t> sequences);
  void SendRtcp(uint32_t viewer, std::vector<uint8_t> packet);

  const ThreadCounters& counters() const { return counters_; }

 private:
  using Command = std::function<void()>;
  void Post(Command command);
  void Run();
  int64_t Work(int64_t now);
  void SendEarlier(SourceQueue* source, uint64_t order, int64_t now);
  void SendSlice(SourceQueue* source, int64_t now);
  void Promote(SourceQueue* source, const Frame& frame);
  void Detach(Slot* slot);
  void Forget(SourceQueue* source);
  Viewer* FindViewer(uint32_t id);
  SourceQueue* FindSource(uint32_t id);

  const size_t history_;
  ThreadCounters counters_;
  PacketSender sender_;
  std::unordered_map<uint32_t, std::unique_ptr<SourceQueue>> sources_;
  std::unordered_map<uint32_t, std::unique_ptr<Viewer>> viewers_;
  int64_t next_report_sweep_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace millrace
