#include "packet_sender.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bytes.h"

namespace millrace {
namespace {

constexpr int64_t kReportIntervalUs = 1'000'000;
// Minimum time between two retransmissions of a packet.
constexpr int64_t kResendGapUs = 15'000;
// Limit of retransmissions to one viewer, as a share of its first transmissions. More would fill a path that is already too narrow, and
// delay the change to a smaller rendition.
constexpr double kResendShare = 0.5;
constexpr size_t kPacketRoom = 2048;
constexpr size_t kMaxTcpBytes = 1 << 20;
constexpr double kNtpOffsetSeconds = 2208988800.0;

double WallSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// 24 bits of seconds in 6.18 fixed point. Only the differences matter, so any even clock will do.
uint32_t AbsoluteSendTime(int64_t now_us) {
  return static_cast<uint32_t>((static_cast<uint64_t>(now_us) << 18) / 1'000'000) & 0xffffff;
}

uint32_t TimestampFor(const Slot& slot, const Frame& frame) {
  return slot.moved_sequence == frame.first_sequence && slot.moved_from == frame.timestamp ? slot.moved_to : frame.timestamp;
}

// For viewers with error correction, parities count as packets after the media packets.
size_t PacketsFor(const Slot& slot, const Frame& frame) {
  return frame.packets() + (slot.fec_payload_type == 0 ? 0 : frame.parities.size());
}

uint64_t FirstSequenceFor(const Slot& slot, const Frame& frame) {
  return slot.fec_payload_type == 0 ? frame.first_sequence : frame.first_protected;
}

// Only this thread writes these two counters, so a packet costs no atomic addition.
void CountSent(ViewerCounters* counters, size_t length) {
  counters->packets.store(counters->packets.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  counters->bytes.store(counters->bytes.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
}

}  // namespace

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

PacketSender::PacketSender(SendMode mode, size_t history, ThreadCounters* counters, EventQueue* events)
    : history_(history), counters_(counters), events_(events), batch_(mode, &counters->send) {}

void PacketSender::SetTime(int64_t now) {
  sending_at_ = now;
  send_time_ = AbsoluteSendTime(now);
}

void PacketSender::Remember(SourceQueue* source, const FrameRef& frame) {
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

void PacketSender::SendPackets(Viewer* viewer, Slot* slot, const SourceQueue* source, const Frame& frame, size_t first, size_t last) {
  if (!viewer->keyed || !viewer->reachable) return;
  const uint64_t sequence = FirstSequenceFor(*slot, frame) + first;
  Slot::Anchor& anchor = slot->anchors[0];
  if (anchor.source != source || anchor.sequence + (slot->next_index - anchor.from) != sequence) {
    // Another source follows, or frames were dropped: the sequence numbers continue without a gap.
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
  viewer->resend_budget = std::min(kMaxResendBurst, viewer->resend_budget + kResendShare * static_cast<double>(last - first));
  if (viewer->socket < 0) HandOverTcp(viewer);
}

// The payload of packet `packet` of a frame, media or parity, after the wrapping headers. Returns its length; writes nothing if `at` is
// null.
size_t PacketSender::WriteBody(const Slot& slot, const Frame& frame, size_t packet, uint64_t index, uint8_t* at) const {
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

// `again`: in the retransmission format (RFC 4588), with the next sequence number of that stream. Returns the length of the payload.
size_t PacketSender::SendPacket(Viewer* viewer, Slot* slot, const Frame& frame, size_t packet, uint64_t index, bool again) {
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
  // Media without a wrapping header needs no copy.
  const bool bare = !again && packet < frame.packets() && slot->red_payload_type == 0;
  if (!bare) WriteBody(*slot, frame, packet, index, at + header + original);
  const uint8_t* plain = bare ? frame.payload(packet) : nullptr;
  const size_t length = viewer->rtp.EncryptRtp(at, header, header + original + payload, ssrc, number, plain);
  if (again) slot->rtx_index += 1;
  if (length == 0) return payload;
  if (slot->transport_sequence_at != 0) {
    if (viewer->log) viewer->log->Write(viewer->transport_sequence, length, sending_at_);
    viewer->transport_sequence += 1;
  }
  CountSent(viewer->counters.get(), length);
  if (viewer->socket >= 0) {
    batch_.Commit(viewer, length);
    if (packet >= frame.packets() && slot->rtx_payload_type == 0) {
      // Players wait for every sequence number, even if they could do without the packet. To a viewer that cannot request retransmissions,
      // the packet is sent twice; receivers discard the second copy as a replay.
      uint8_t* copy = batch_.Reserve(viewer->socket, length);
      memmove(copy, at, length);
      batch_.Commit(viewer, length);
      CountSent(viewer->counters.get(), length);
    }
  } else if (viewer->tcp.size() < kMaxTcpBytes) {
    const char prefix[2] = {static_cast<char>(length >> 8), static_cast<char>(length)};
    viewer->tcp.append(prefix, sizeof prefix);
    viewer->tcp.append(reinterpret_cast<char*>(at), length);
  }
  return payload;
}

void PacketSender::Resend(Viewer* viewer, uint32_t ssrc, const std::vector<uint16_t>& sequences) {
  if (!viewer->keyed || !viewer->reachable || history_ == 0) return;
  Slot* slot = nullptr;
  for (const auto& candidate : viewer->slots)
    if (candidate->ssrc == ssrc && candidate->rtx_payload_type != 0) slot = candidate.get();
  if (slot == nullptr || slot->next_index == 0) return;
  const int64_t now = NowUs();
  SetTime(now);
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
      counters_->too_old.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    const uint64_t wanted = anchor->sequence + (index - anchor->from);
    const bool counts_parities = slot->fec_payload_type != 0 && anchor->source->fec;
    const SourceQueue::Kept& kept = (counts_parities ? anchor->source->protected_history : anchor->source->history)[wanted % history_];
    if (kept.frame == nullptr || FirstSequenceFor(*slot, *kept.frame) + kept.packet != wanted) {
      counters_->too_old.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    Slot::Resent& lately = slot->resent[index % (sizeof slot->resent / sizeof slot->resent[0])];
    if (lately.index == index && now - lately.at < kResendGapUs) continue;
    if (viewer->resend_budget < 1) break;
    viewer->resend_budget -= 1;
    lately = {index, now};
    SendPacket(viewer, slot, *kept.frame, kept.packet, index, true);
    viewer->counters->resent.fetch_add(1, std::memory_order_relaxed);
    counters_->resent.fetch_add(1, std::memory_order_relaxed);
  }
  if (viewer->socket < 0) HandOverTcp(viewer);
}

// Sender reports of all streams with one source description (RFC 3550 sections 6.4.1 and 6.5).
void PacketSender::Report(Viewer* viewer, int64_t now) {
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
  SendRtcp(viewer, packet, length);
}

void PacketSender::SendRtcp(Viewer* viewer, const uint8_t* packet, size_t length) {
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

void PacketSender::HandOverTcp(Viewer* viewer) {
  if (viewer->tcp.empty()) return;
  events_->Push({EventType::kTcp, viewer->id, {}, std::move(viewer->tcp)}, viewer->id);
  viewer->tcp.clear();
}

}  // namespace millrace
