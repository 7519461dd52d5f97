#include "shard.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

// Keyframes leave in slices of this many packets, so that they do not flood a downlink's queue.
constexpr size_t kSlicePackets = 24;
// A downlink's queue has room for this many packets at the beginning of a frame, so their slices follow each other sooner.
constexpr size_t kQuickPackets = 72;
constexpr int64_t kQuickGapUs = 1000;
constexpr int64_t kSliceGapUs = 3000;
// Limit of slices per frame, however long the frame is.
constexpr size_t kMaxSlices = 8;
// Limit of frames of one source that wait in a thread; when it is reached, the thread skips to the next keyframe.
constexpr size_t kMaxPendingFrames = 120;
// Limit of waiting commands, beyond which loss reports are dropped.
constexpr size_t kMaxWaitingCommands = 4096;
constexpr int64_t kReportSweepUs = 50'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

using Recipient = SourceQueue::Recipient;

void Unlist(const Slot* slot, std::vector<Recipient>& recipients) {
  const auto found = std::find_if(recipients.begin(), recipients.end(), [slot](const Recipient& recipient) { return recipient.slot == slot; });
  if (found == recipients.end()) return;
  *found = recipients.back();
  recipients.pop_back();
}

}  // namespace

Shard::Shard(SendMode mode, size_t history, EventQueue* events)
    : history_(history), sender_(mode, history, &counters_, events), thread_([this] { Run(); }) {}

Shard::~Shard() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Shard::Post(Command command) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    inbox_.push_back(std::move(command));
  }
  wake_.notify_one();
}

void Shard::OpenSource(uint32_t id, uint32_t clock_rate, double epoch, bool fec) {
  Post([this, id, clock_rate, epoch, fec] {
    auto source = std::make_unique<SourceQueue>();
    source->id = id;
    source->clock_rate = clock_rate;
    source->epoch = epoch;
    source->fec = fec;
    source->history.resize(history_);
    if (fec) source->protected_history.resize(history_);
    sources_[id] = std::move(source);
  });
}

void Shard::CloseSource(uint32_t id) {
  Post([this, id] {
    SourceQueue* source = FindSource(id);
    if (source == nullptr) return;
    Forget(source);
    sources_.erase(id);
  });
}

void Shard::Push(uint32_t id, FrameRef frame) {
  Post([this, id, frame = std::move(frame)] {
    SourceQueue* source = FindSource(id);
    if (source == nullptr) return;
    if (source->pending.size() >= kMaxPendingFrames) {
      // The frame in progress is finished; the rest of the queue is dropped.
      counters_.dropped_frames.fetch_add(source->pending.size() - 1, std::memory_order_relaxed);
      source->pending.resize(1);
      source->skipping = true;
    }
    if (source->skipping && !frame->keyframe) {
      counters_.dropped_frames.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    source->skipping = false;
    source->pending.push_back(frame);
  });
}

void Shard::AddViewer(std::unique_ptr<Viewer> viewer) {
  // Commands must be copyable, so the viewer travels as a plain pointer.
  Viewer* raw = viewer.release();
  Post([this, raw] { viewers_[raw->id] = std::unique_ptr<Viewer>(raw); });
}

void Shard::RemoveViewer(uint32_t id) {
  Post([this, id] {
    Viewer* viewer = FindViewer(id);
    if (viewer == nullptr) return;
    // Datagrams in the batch refer to their viewers.
    sender_.Flush();
    for (const auto& slot : viewer->slots) Detach(slot.get());
    viewers_.erase(id);
  });
}

void Shard::Connect(uint32_t id, int socket, const Address& address) {
  Post([this, id, socket, address] {
    Viewer* viewer = FindViewer(id);
    if (viewer == nullptr) return;
    viewer->socket = socket;
    viewer->address = address;
    viewer->whole_datagrams = false;
    viewer->reachable = true;
  });
}

void Shard::SetKeys(uint32_t id, SrtpCipher rtp, SrtpCipher rtcp) {
  auto keys = std::make_shared<std::pair<SrtpCipher, SrtpCipher>>(std::move(rtp), std::move(rtcp));
  Post([this, id, keys] {
    Viewer* viewer = FindViewer(id);
    if (viewer == nullptr) return;
    viewer->rtp = std::move(keys->first);
    viewer->rtcp = std::move(keys->second);
    viewer->keyed = true;
  });
}

void Shard::Play(uint32_t id, size_t slot_number, uint32_t source_id) {
  Post([this, id, slot_number, source_id] {
    Viewer* viewer = FindViewer(id);
    if (viewer == nullptr || slot_number >= viewer->slots.size()) return;
    Slot* slot = viewer->slots[slot_number].get();
    SourceQueue* source = FindSource(source_id);
    if (source == nullptr) {
      Detach(slot);
      return;
    }
    if (slot->next != nullptr) Unlist(slot, slot->next->joining);
    slot->next = nullptr;
    if (slot->source == source) return;
    slot->next = source;
    source->joining.push_back({viewer, slot});
  });
}

void Shard::Resend(uint32_t id, uint32_t ssrc, std::vector<uint16_t> sequences) {
  {
    // Viewers determine the number of loss reports, so none is added to a long inbox.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (inbox_.size() >= kMaxWaitingCommands) {
      counters_.ignored.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  Post([this, id, ssrc, sequences = std::move(sequences)] {
    Viewer* viewer = FindViewer(id);
    if (viewer != nullptr) sender_.Resend(viewer, ssrc, sequences);
  });
}

void Shard::SendRtcp(uint32_t id, std::vector<uint8_t> packet) {
  Post([this, id, packet = std::move(packet)] {
    Viewer* viewer = FindViewer(id);
    if (viewer != nullptr) sender_.SendRtcp(viewer, packet.data(), packet.size());
  });
}

void Shard::Run() {
  // The name shown by `top -H`.
  pthread_setname_np(pthread_self(), "webrtc-send");
  std::vector<Command> commands;
  int64_t due = NowUs();
  const auto has_work = [this] { return stopping_ || !inbox_.empty(); };
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (due == kNever) wake_.wait(lock, has_work);
      else wake_.wait_until(lock, Clock::time_point(std::chrono::microseconds(due)), has_work);
      if (stopping_) break;
      commands.swap(inbox_);
    }
    for (const Command& command : commands) command();
    commands.clear();
    due = Work(NowUs());
  }
  // Viewers in commands that the thread has not run.
  for (const Command& command : inbox_) command();
}

// Sends due packets and returns the time of the next ones; without viewers and frames nothing is due before the next command.
int64_t Shard::Work(int64_t now) {
  int64_t next = viewers_.empty() ? kNever : now + kReportSweepUs;
  sender_.SetTime(now);
  for (const auto& [id, source] : sources_) {
    while (!source->pending.empty() && source->due <= now) SendSlice(source.get(), now);
    if (!source->pending.empty()) next = std::min(next, source->due);
  }
  if (now >= next_report_sweep_) {
    next_report_sweep_ = now + kReportSweepUs;
    for (const auto& [id, viewer] : viewers_) {
      if (viewer->next_report <= now) sender_.Report(viewer.get(), now);
    }
  }
  sender_.Flush();
  return next;
}

// Sends the frames of previous sources that were pushed before `order`, for viewers that are about to change to `source`.
void Shard::SendEarlier(SourceQueue* source, uint64_t order, int64_t now) {
  for (size_t n = 0; n < source->joining.size(); n += 1) {
    SourceQueue* old = source->joining[n].slot->source;
    if (old == nullptr || old == source) continue;
    while (!old->pending.empty() && old->due <= now && old->pending.front()->order < order) SendSlice(old, now);
  }
}

void Shard::SendSlice(SourceQueue* source, int64_t now) {
  const FrameRef frame = source->pending.front();
  const size_t packets = frame->packets();
  if (source->cursor == 0) {
    sender_.Remember(source, frame);
    if (frame->keyframe) {
      SendEarlier(source, frame->order, now);
      Promote(source, *frame);
    }
  }
  const size_t slice = std::max(kSlicePackets, (packets + kMaxSlices - 1) / kMaxSlices);
  const size_t first = source->cursor;
  const size_t last = packets - first <= slice ? packets : first + slice;
  for (const Recipient& recipient : source->recipients) sender_.SendPackets(recipient.viewer, recipient.slot, source, *frame, first, last);
  const int64_t gap = last < kQuickPackets ? kQuickGapUs : kSliceGapUs;
  source->cursor = last;
  source->due = now;
  if (last == packets) {
    source->pending.pop_front();
    source->cursor = 0;
    if (packets > slice) source->due = now + gap;
  } else if (source->pending.size() < kMaxPendingFrames / 4) {
    source->due = now + gap;
  }
}

// Gives this keyframe and everything after it to the viewers that wait for `source`; they leave their previous source.
void Shard::Promote(SourceQueue* source, const Frame& frame) {
  for (const Recipient& recipient : source->joining) {
    Slot* slot = recipient.slot;
    if (slot->source != nullptr) Unlist(slot, slot->source->recipients);
    if (slot->sent_packets > 0 && static_cast<int32_t>(frame.timestamp - slot->last_timestamp) <= 0) {
      slot->moved_sequence = frame.first_sequence;
      slot->moved_from = frame.timestamp;
      slot->moved_to = slot->last_timestamp + 1;
    }
    slot->source = source;
    slot->next = nullptr;
    source->recipients.push_back(recipient);
  }
  source->joining.clear();
}

void Shard::Detach(Slot* slot) {
  if (slot->source != nullptr) Unlist(slot, slot->source->recipients);
  if (slot->next != nullptr) Unlist(slot, slot->next->joining);
  slot->source = nullptr;
  slot->next = nullptr;
}

// Removes all references to a source that ends.
void Shard::Forget(SourceQueue* source) {
  for (const Recipient& recipient : source->recipients) recipient.slot->source = nullptr;
  for (const Recipient& recipient : source->joining) recipient.slot->next = nullptr;
  for (const auto& [id, viewer] : viewers_) {
    for (const auto& slot : viewer->slots) {
      for (Slot::Anchor& anchor : slot->anchors)
        if (anchor.source == source) anchor = {};
    }
  }
}

Viewer* Shard::FindViewer(uint32_t id) {
  const auto found = viewers_.find(id);
  return found == viewers_.end() ? nullptr : found->second.get();
}

SourceQueue* Shard::FindSource(uint32_t id) {
  const auto found = sources_.find(id);
  return found == sources_.end() ? nullptr : found->second.get();
}

}  // namespace millrace
