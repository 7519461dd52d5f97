#include "shard.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bytes.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

// Keyframes leave in slices of this many packets, so that they do not flood a downlink's queue.
constexpr size_t kSlicePackets = 24;
constexpr int64_t kSliceGapUs = 3000;
// However long the frame is, its last slice leaves this many slices after the first.
constexpr size_t kMostSlices = 8;
// Frames of one source that may wait in a thread; beyond, it skips to the next keyframe.
constexpr size_t kPendingFrames = 120;
// Commands that may wait before reports of losses are left out.
constexpr size_t kWaitingCommands = 4096;
constexpr int64_t kReportIntervalUs = 1'000'000;
constexpr int64_t kReportSweepUs = 50'000;
// The same packet is not sent again more often than this.
constexpr int64_t kResendGapUs = 15'000;
// Packets sent again to one viewer: a share of those sent for the first time. More would fill a path that is too narrow
// already, and keep out the smaller rendition that helps.
constexpr double kResendShare = 0.5;
constexpr size_t kPacketRoom = 2048;
constexpr size_t kTcpLimit = 1 << 20;
constexpr double kNtpOffsetSeconds = 2208988800.0;

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
}

double WallSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// 24 bits of seconds in 6.18 fixed point, of a clock that only has to run evenly.
uint32_t AbsoluteSendTime(int64_t now_us) {
  return static_cast<uint32_t>((static_cast<uint64_t>(now_us) << 18) / 1'000'000) & 0xffffff;
}

uint32_t TimestampFor(const Slot& slot, const Frame& frame) {
  return slot.moved_sequence == frame.first_sequence && slot.moved_from == frame.timestamp ? slot.moved_to : frame.timestamp;
}

// Viewers with error correction get parities as packets behind the others, so that their numbers run ahead.
size_t PacketsFor(const Slot& slot, const Frame& frame) {
  return frame.packets() + (slot.fec_payload_type == 0 ? 0 : frame.parities.size());
}

uint64_t FirstSequenceFor(const Slot& slot, const Frame& frame) {
  return slot.fec_payload_type == 0 ? frame.first_sequence : frame.first_protected;
}

template <typename T>
void EraseAt(std::vector<T>& items, size_t at) {
  items[at] = items.back();
  items.pop_back();
}

void Unlist(Slot* slot, std::vector<Slot*>& slots, std::vector<Viewer*>& viewers) {
  const auto found = std::find(slots.begin(), slots.end(), slot);
  if (found == slots.end()) return;
  const size_t at = static_cast<size_t>(found - slots.begin());
  EraseAt(slots, at);
  EraseAt(viewers, at);
}

}  // namespace

Shard::Shard(SendMode mode, size_t history, EventQueue* events)
    : history_(history), events_(events), batch_(mode, &counters_.send), thread_([this] { Run(); }) {}

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
    if (source->pending.size() >= kPendingFrames) {
      // The frame being sent is finished; the others are given up.
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
  // A command must be copyable; the viewer is handed over by its address.
  Viewer* raw = viewer.release();
  Post([this, raw] { viewers_[raw->id] = std::unique_ptr<Viewer>(raw); });
}

void Shard::RemoveViewer(uint32_t id) {
  Post([this, id] {
    Viewer* viewer = FindViewer(id);
    if (viewer == nullptr) return;
    // Datagrams that wait in the batch name their viewer.
    batch_.Flush();
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
    if (slot->next != nullptr) Unlist(slot, slot->next->joining, slot->next->joining_viewers);
    slot->next = nullptr;
    if (slot->source == source) return;
    slot->next = source;
    source->joining.push_back(slot);
    source->joining_viewers.push_back(viewer);
  });
}

void Shard::Resend(uint32_t id, uint32_t ssrc, std::vector<uint16_t> sequences) {
  {
    // Viewers decide how many of these there are, so they are the ones that wait outside.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (inbox_.size() >= kWaitingCommands) {
      counters_.ignored.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  Post([this, id, ssrc, sequences = std::move(sequences)] {
    Viewer* viewer = FindViewer(id);
    if (viewer != nullptr) ResendNow(viewer, ssrc, sequences);
  });
}

void Shard::SendRtcp(uint32_t id, std::vector<uint8_t> packet) {
  Post([this, id, packet = std::move(packet)] {
    Viewer* viewer = FindViewer(id);
    if (viewer != nullptr) SendRtcpNow(viewer, packet.data(), packet.size());
  });
}

void Shard::Run() {
  std::vector<Command> commands;
  int64_t due = NowUs();
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto until = Clock::time_point(std::chrono::microseconds(due));
      wake_.wait_until(lock, until, [this] { return stopping_ || !inbox_.empty(); });
      if (stopping_) break;
      commands.swap(inbox_);
    }
    for (const Command& command : commands) command();
    commands.clear();
    due = Work(NowUs());
  }
  // Viewers that were on their way when the thread ended.
  for (const Command& command : inbox_) command();
}

// Sends what is due and returns when to look again.
int64_t Shard::Work(int64_t now) {
  int64_t next = now + kReportSweepUs;
  sending_at_ = now;
  send_time_ = AbsoluteSendTime(now);
  for (const auto& [id, source] : sources_) {
    while (!source->pending.empty() && source->due <= now) SendSlice(source.get(), now);
    if (!source->pending.empty()) next = std::min(next, source->due);
  }
  if (now >= next_report_sweep_) {
    next_report_sweep_ = now + kReportSweepUs;
    for (const auto& [id, viewer] : viewers_) {
      if (viewer->next_report <= now) Report(viewer.get(), now);
    }
  }
  batch_.Flush();
  return next;
}

// Sends what was pushed before `order` to the sources that viewers leave for `source`: nothing of it is overtaken.
void Shard::SendEarlier(SourceQueue* source, uint64_t order, int64_t now) {
  for (size_t n = 0; n < source->joining.size(); n += 1) {
    SourceQueue* old = source->joining[n]->source;
    if (old == nullptr || old == source) continue;
    while (!old->pending.empty() && old->due <= now && old->pending.front()->order < order) SendSlice(old, now);
  }
}

void Shard::SendSlice(SourceQueue* source, int64_t now) {
  const FrameRef frame = source->pending.front();
  const size_t packets = frame->packets();
  if (source->cursor == 0) {
    Remember(source, frame);
    if (frame->keyframe) {
      SendEarlier(source, frame->order, now);
      Promote(source, *frame);
    }
  }
  const size_t slice = std::max(kSlicePackets, (packets + kMostSlices - 1) / kMostSlices);
  const size_t first = source->cursor;
  const size_t last = packets - first <= slice ? packets : first + slice;
  for (size_t n = 0; n < source->slots.size(); n += 1) SendPackets(source->slot_viewers[n], source->slots[n], source, *frame, first, last);
  source->cursor = last;
  source->due = now;
  if (last == packets) {
    source->pending.pop_front();
    source->cursor = 0;
    if (packets > slice) source->due = now + kSliceGapUs;
  } else if (source->pending.size() < kPendingFrames / 4) {
    source->due = now + kSliceGapUs;
  }
}

// Whoever waits for this source gets it from its keyframe on, and leaves the one it had.
void Shard::Promote(SourceQueue* source, const Frame& frame) {
  for (size_t n = 0; n < source->joining.size(); n += 1) {
    Slot* slot = source->joining[n];
    if (slot->source != nullptr) Unlist(slot, slot->source->slots, slot->source->slot_viewers);
    if (slot->sent_packets > 0 && static_cast<int32_t>(frame.timestamp - slot->last_timestamp) <= 0) {
      slot->moved_sequence = frame.first_sequence;
      slot->moved_from = frame.timestamp;
      slot->moved_to = slot->last_timestamp + 1;
    }
    slot->source = source;
    slot->next = nullptr;
    source->slots.push_back(slot);
    source->slot_viewers.push_back(source->joining_viewers[n]);
  }
  source->joining.clear();
  source->joining_viewers.clear();
}

void Shard::SendPackets(Viewer* viewer, Slot* slot, const SourceQueue* source, const Frame& frame, size_t first, size_t last) {
  if (!viewer->keyed || !viewer->reachable) return;
  const uint64_t sequence = FirstSequenceFor(*slot, frame) + first;
  Slot::Anchor& anchor = slot->anchors[0];
  if (anchor.source != source || anchor.sequence + (slot->next_index - anchor.from) != sequence) {
    // Another source, or frames were left out: the viewer's own numbers go on without a gap.
    for (size_t n = 3; n > 0; n -= 1) slot->anchors[n] = slot->anchors[n - 1];
    anchor = {source, slot->next_index, sequence};
  }
  slot->last_timestamp = TimestampFor(*slot, frame);
  const size_t end = last == frame.packets() ? PacketsFor(*slot, frame) : last;
  for (size_t packet = first; packet < end; packet += 1) {
    slot->sent_octets += static_cast<uint32_t>(SendPacket(viewer, slot, frame, packet, slot->next_index, false));
    slot->next_index += 1;
  }
  slot->sent_packets += static_cast<uint32_t>(end - first);
  viewer->resend_budget = std::min(kResendBurst, viewer->resend_budget + kResendShare * static_cast<double>(last - first));
  if (viewer->socket < 0) HandOverTcp(viewer);
}

// The payload of packet `packet` of a frame: of the media, or a parity, behind what they are wrapped into. Returns its length,
// without writing when `at` is null.
size_t Shard::WriteBody(const Slot& slot, const Frame& frame, size_t packet, uint64_t index, uint8_t* at) const {
  const size_t wrapped = slot.red_payload_type == 0 ? 0 : 1;
  if (packet < frame.packets()) {
    const size_t length = frame.payload_length(packet);
    if (at == nullptr) return wrapped + length;
    if (wrapped != 0) at[0] = slot.payload_type;
    memcpy(at + wrapped, frame.payload(packet), length);
    return wrapped + length;
  }
  const Parity& parity = frame.parities[packet - frame.packets()];
  const size_t length = wrapped + ParityLength(parity, slot.extension.size());
  if (at == nullptr) return length;
  if (wrapped != 0) at[0] = slot.fec_payload_type;
  const uint16_t protects = static_cast<uint16_t>(index - (packet - parity.first));
  WriteParity(parity, {slot.extension.data(), slot.extension.size(), slot.payload_type, TimestampFor(slot, frame), protects, &frame.offsets},
              at + wrapped);
  return length;
}

// `again`: in the retransmission format (RFC 4588), under the next number of that stream. Returns the length of the payload.
size_t Shard::SendPacket(Viewer* viewer, Slot* slot, const Frame& frame, size_t packet, uint64_t index, bool again) {
  const size_t payload = WriteBody(*slot, frame, packet, index, nullptr);
  const size_t header = 12 + slot->extension.size();
  const size_t original = again ? 2 : 0;
  const size_t room = header + original + payload + kRtpOverhead;
  if (room > kPacketRoom) return 0;
  uint8_t scratch[kPacketRoom];
  uint8_t* at = viewer->socket < 0 ? scratch : batch_.Reserve(viewer->socket, room);
  const uint32_t ssrc = again ? slot->rtx_ssrc : slot->ssrc;
  const uint64_t number = again ? slot->rtx_index : index;
  const bool marker = frame.marker && packet + 1 == frame.packets();
  at[0] = static_cast<uint8_t>(slot->extension.empty() ? 0x80 : 0x90);
  at[1] = static_cast<uint8_t>((marker ? 0x80 : 0) | (again ? slot->rtx_payload_type : slot->red_payload_type != 0 ? slot->red_payload_type : slot->payload_type));
  Write16(at + 2, static_cast<uint32_t>(number));
  Write32(at + 4, TimestampFor(*slot, frame));
  Write32(at + 8, ssrc);
  if (!slot->extension.empty()) {
    memcpy(at + 12, slot->extension.data(), slot->extension.size());
    if (slot->send_time_at != 0) Write24(at + 12 + slot->send_time_at, send_time_);
    if (slot->transport_sequence_at != 0) Write16(at + 12 + slot->transport_sequence_at, viewer->transport_sequence);
  }
  if (again) Write16(at + header, static_cast<uint32_t>(index));
  WriteBody(*slot, frame, packet, index, at + header + original);
  const size_t length = viewer->rtp.EncryptRtp(at, header, header + original + payload, ssrc, number);
  if (again) slot->rtx_index += 1;
  if (length == 0) return payload;
  if (slot->transport_sequence_at != 0) {
    if (viewer->log) viewer->log->Write(viewer->transport_sequence, length, sending_at_);
    viewer->transport_sequence += 1;
  }
  viewer->counters->packets.fetch_add(1, std::memory_order_relaxed);
  viewer->counters->bytes.fetch_add(length, std::memory_order_relaxed);
  if (viewer->socket >= 0) {
    batch_.Commit(viewer, length);
    if (packet >= frame.packets() && slot->rtx_payload_type == 0) {
      // Players wait for every number, also for one that they could do without. Where it cannot be asked for again, it leaves
      // twice; the second is a replay to those who got the first.
      uint8_t* copy = batch_.Reserve(viewer->socket, length);
      memmove(copy, at, length);
      batch_.Commit(viewer, length);
      viewer->counters->packets.fetch_add(1, std::memory_order_relaxed);
      viewer->counters->bytes.fetch_add(length, std::memory_order_relaxed);
    }
  } else if (viewer->tcp.size() < kTcpLimit) {
    const char prefix[2] = {static_cast<char>(length >> 8), static_cast<char>(length)};
    viewer->tcp.append(prefix, sizeof prefix);
    viewer->tcp.append(reinterpret_cast<char*>(at), length);
  }
  return payload;
}

void Shard::Remember(SourceQueue* source, const FrameRef& frame) {
  if (history_ == 0) return;
  if (source->fec) {
    for (size_t packet = 0; packet < frame->packets() + frame->parities.size(); packet += 1) {
      source->protected_history[(frame->first_protected + packet) % history_] = {frame, static_cast<uint32_t>(packet)};
    }
  }
  for (size_t packet = 0; packet < frame->packets(); packet += 1) {
    source->history[(frame->first_sequence + packet) % history_] = {frame, static_cast<uint32_t>(packet)};
  }
}

void Shard::ResendNow(Viewer* viewer, uint32_t ssrc, const std::vector<uint16_t>& sequences) {
  if (!viewer->keyed || !viewer->reachable || history_ == 0) return;
  Slot* slot = nullptr;
  for (const auto& candidate : viewer->slots)
    if (candidate->ssrc == ssrc && candidate->rtx_payload_type != 0) slot = candidate.get();
  if (slot == nullptr || slot->next_index == 0) return;
  const int64_t now = NowUs();
  sending_at_ = now;
  send_time_ = AbsoluteSendTime(now);
  for (const uint16_t sequence : sequences) {
    const uint16_t behind = static_cast<uint16_t>(static_cast<uint16_t>(slot->next_index) - sequence);
    if (behind == 0 || behind > 0x7fff || behind > slot->next_index) continue;
    const uint64_t index = slot->next_index - behind;
    const Slot::Anchor* anchor = nullptr;
    for (const Slot::Anchor& candidate : slot->anchors) {
      if (candidate.source != nullptr && candidate.from <= index) {
        anchor = &candidate;
        break;
      }
    }
    if (anchor == nullptr) {
      counters_.too_old.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    const uint64_t wanted = anchor->sequence + (index - anchor->from);
    const bool counts_parities = slot->fec_payload_type != 0 && anchor->source->fec;
    const SourceQueue::Kept& kept = (counts_parities ? anchor->source->protected_history : anchor->source->history)[wanted % history_];
    if (kept.frame == nullptr || FirstSequenceFor(*slot, *kept.frame) + kept.packet != wanted) {
      counters_.too_old.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    Slot::Resent& lately = slot->resent[index % (sizeof slot->resent / sizeof slot->resent[0])];
    if (lately.index == index && now - lately.at < kResendGapUs) continue;
    if (viewer->resend_budget < 1) break;
    viewer->resend_budget -= 1;
    lately = {index, now};
    SendPacket(viewer, slot, *kept.frame, kept.packet, index, true);
    viewer->counters->resent.fetch_add(1, std::memory_order_relaxed);
    counters_.resent.fetch_add(1, std::memory_order_relaxed);
  }
  if (viewer->socket < 0) HandOverTcp(viewer);
}

// Sender reports of all streams with one source description (RFC 3550 sections 6.4.1 and 6.5).
void Shard::Report(Viewer* viewer, int64_t now) {
  if (!viewer->keyed || !viewer->reachable) return;
  uint8_t packet[512];
  size_t length = 0;
  const double wall = WallSeconds();
  const double ntp = wall + kNtpOffsetSeconds;
  const uint32_t seconds = static_cast<uint32_t>(static_cast<uint64_t>(ntp));
  const uint32_t fraction = static_cast<uint32_t>((ntp - static_cast<double>(static_cast<uint64_t>(ntp))) * 4294967296.0);
  uint32_t speaker = 0;
  for (const auto& slot : viewer->slots) {
    if (slot->source == nullptr || slot->sent_packets == 0 || length + 28 > 256) continue;
    uint8_t* at = packet + length;
    at[0] = 0x80;
    at[1] = 200;
    Write16(at + 2, 6);
    Write32(at + 4, slot->ssrc);
    Write32(at + 8, seconds);
    Write32(at + 12, fraction);
    const double elapsed = wall - slot->source->epoch / 1000;
    Write32(at + 16, static_cast<uint32_t>(static_cast<int64_t>(elapsed * slot->source->clock_rate)));
    Write32(at + 20, slot->sent_packets);
    Write32(at + 24, slot->sent_octets);
    length += 28;
    speaker = slot->ssrc;
  }
  if (length == 0) return;
  viewer->next_report = now + kReportIntervalUs;
  const size_t name = std::min<size_t>(viewer->cname.size(), 64);
  // Item, its terminating zero, and zeros up to the next word.
  const size_t words = (4 + 2 + name + 1 + 3) / 4;
  uint8_t* at = packet + length;
  memset(at, 0, 4 + words * 4);
  at[0] = 0x81;
  at[1] = 202;
  Write16(at + 2, static_cast<uint32_t>(words));
  Write32(at + 4, speaker);
  at[8] = 1;
  at[9] = static_cast<uint8_t>(name);
  memcpy(at + 10, viewer->cname.data(), name);
  length += 4 + words * 4;
  SendRtcpNow(viewer, packet, length);
}

void Shard::SendRtcpNow(Viewer* viewer, const uint8_t* packet, size_t length) {
  if (!viewer->keyed || !viewer->reachable || length < 8 || length + kRtcpOverhead > kPacketRoom) return;
  uint8_t scratch[kPacketRoom];
  uint8_t* at = viewer->socket < 0 ? scratch : batch_.Reserve(viewer->socket, length + kRtcpOverhead);
  memcpy(at, packet, length);
  const size_t sealed = viewer->rtcp.EncryptRtcp(at, length, viewer->rtcp_index);
  viewer->rtcp_index = (viewer->rtcp_index + 1) & 0x7fffffff;
  if (sealed == 0) return;
  viewer->counters->bytes.fetch_add(sealed, std::memory_order_relaxed);
  if (viewer->socket >= 0) {
    batch_.Commit(viewer, sealed);
    return;
  }
  const char prefix[2] = {static_cast<char>(sealed >> 8), static_cast<char>(sealed)};
  viewer->tcp.append(prefix, sizeof prefix);
  viewer->tcp.append(reinterpret_cast<char*>(at), sealed);
  HandOverTcp(viewer);
}

void Shard::HandOverTcp(Viewer* viewer) {
  if (viewer->tcp.empty()) return;
  events_->Push({EventType::kTcp, viewer->id, {}, std::move(viewer->tcp)}, viewer->id);
  viewer->tcp.clear();
}

void Shard::Detach(Slot* slot) {
  if (slot->source != nullptr) Unlist(slot, slot->source->slots, slot->source->slot_viewers);
  if (slot->next != nullptr) Unlist(slot, slot->next->joining, slot->next->joining_viewers);
  slot->source = nullptr;
  slot->next = nullptr;
}

// A source ends: nobody may point at it any more.
void Shard::Forget(SourceQueue* source) {
  for (Slot* slot : source->slots) slot->source = nullptr;
  for (Slot* slot : source->joining) slot->next = nullptr;
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
