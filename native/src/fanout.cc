#include "fanout.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

// Enough for the bursts of hundreds of viewers; the kernel may grant less.
constexpr int kSocketBuffer = 8 << 20;
constexpr size_t kMaxPayload = 1400;
constexpr size_t kMaxPackets = 4096;

}  // namespace

Fanout::Fanout(size_t threads, SendMode mode, size_t history, std::function<void()> wake) : events_(std::move(wake)) {
  for (size_t n = 0; n < threads; n += 1) shards_.push_back(std::make_unique<Shard>(mode, history, &events_));
  receiver_ = std::make_unique<Receiver>(&events_);
}

Fanout::~Fanout() {
  // The receiver first: it hands work to the shards.
  receiver_.reset();
  shards_.clear();
  for (const int socket : sockets_) close(socket);
}

bool Fanout::Bind(const std::string& host, uint16_t port, uint32_t* id, uint16_t* bound, std::string* error) {
  Address address;
  if (!ParseAddress(host, port, &address)) {
    *error = "'" + host + "' is not an IP address";
    return false;
  }
  const int descriptor = BindUdp(address, kSocketBuffer, bound);
  if (descriptor < 0) {
    *error = strerror(errno);
    return false;
  }
  *id = static_cast<uint32_t>(sockets_.size());
  sockets_.push_back(descriptor);
  receiver_->AddSocket(*id, descriptor);
  return true;
}

bool Fanout::Send(uint32_t socket, const std::string& host, uint16_t port, const uint8_t* data, size_t length) {
  Address to;
  if (socket >= sockets_.size() || !ParseAddress(host, port, &to)) return false;
  const ssize_t sent = sendto(sockets_[socket], data, length, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to.storage), to.length);
  return sent == static_cast<ssize_t>(length);
}

uint32_t Fanout::OpenSource(uint32_t clock_rate, double epoch, bool fec) {
  const uint32_t id = next_id_;
  next_id_ += 1;
  Source& source = sources_[id];
  source.clock_rate = clock_rate;
  source.epoch = epoch;
  source.fec = fec;
  return id;
}

void Fanout::CloseSource(uint32_t id) {
  const auto found = sources_.find(id);
  if (found == sources_.end()) return;
  for (Shard* shard : found->second.shards) shard->CloseSource(id);
  sources_.erase(found);
}

bool Fanout::Push(uint32_t id, uint32_t timestamp, bool keyframe, bool marker, const uint8_t* data, size_t length,
                  const std::vector<uint32_t>& sizes) {
  const auto found = sources_.find(id);
  if (found == sources_.end() || sizes.empty() || sizes.size() > kMaxPackets) return false;
  size_t total = 0;
  for (const uint32_t size : sizes) {
    if (size == 0 || size > kMaxPayload) return false;
    total += size;
  }
  if (total != length) return false;
  Source& source = found->second;
  if (source.shards.empty()) return true;
  auto frame = std::make_shared<Frame>();
  frame->offsets.reserve(sizes.size() + 1);
  frame->offsets.push_back(0);
  for (const uint32_t size : sizes) frame->offsets.push_back(frame->offsets.back() + size);
  frame->order = next_order_;
  next_order_ += 1;
  frame->first_sequence = source.next_sequence;
  frame->first_protected = source.next_protected;
  frame->timestamp = timestamp;
  frame->keyframe = keyframe;
  frame->marker = marker;
  frame->payloads.assign(data, data + length);
  if (source.fec) frame->parities = MakeParities(data, frame->offsets, marker);
  source.next_sequence += sizes.size();
  source.next_protected += sizes.size() + frame->parities.size();
  for (Shard* shard : source.shards) shard->Push(id, frame);
  return true;
}

uint32_t Fanout::OpenViewer(std::unique_ptr<Viewer> viewer) {
  const uint32_t id = next_id_;
  next_id_ += 1;
  Member member;
  member.shard = shards_[next_shard_ % shards_.size()].get();
  next_shard_ += 1;
  member.counters = std::make_shared<ViewerCounters>();
  viewer->id = id;
  viewer->counters = member.counters;
  for (const auto& slot : viewer->slots) {
    if (slot->transport_sequence_at != 0 && !member.log) member.log = std::make_shared<SendLog>();
  }
  viewer->log = member.log;
  member.shard->AddViewer(std::move(viewer));
  members_[id] = member;
  return id;
}

void Fanout::CloseViewer(uint32_t id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  receiver_->RemoveViewer(id);
  found->second.shard->RemoveViewer(id);
  members_.erase(found);
}

bool Fanout::SetKeys(uint32_t id, Profile profile, const uint8_t* local_key, const uint8_t* local_salt, const uint8_t* remote_key,
                     const uint8_t* remote_salt) {
  const auto found = members_.find(id);
  if (found == members_.end()) return false;
  Member& member = found->second;
  SrtpCipher rtp;
  SrtpCipher rtcp;
  auto receive = std::make_unique<SrtpReceiver>();
  if (!rtp.Init(profile, local_key, local_salt, 0, true) || !rtcp.Init(profile, local_key, local_salt, 3, true) ||
      !receive->Init(profile, remote_key, remote_salt))
    return false;
  member.shard->SetKeys(id, std::move(rtp), std::move(rtcp));
  receiver_->AddViewer(id, member.shard, member.counters, std::move(receive));
  member.keyed = true;
  for (const auto& [socket, address] : member.places) receiver_->Hear(id, socket, address);
  member.places.clear();
  return true;
}

bool Fanout::Connect(uint32_t id, uint32_t socket, const std::string& host, uint16_t port) {
  const auto found = members_.find(id);
  if (found == members_.end() || socket >= sockets_.size()) return false;
  Address address;
  if (!ParseAddress(host, port, &address)) return false;
  found->second.shard->Connect(id, sockets_[socket], address);
  return HearAt(id, &found->second, socket, address);
}

bool Fanout::Hear(uint32_t id, uint32_t socket, const std::string& host, uint16_t port) {
  const auto found = members_.find(id);
  Address address;
  if (found == members_.end() || socket >= sockets_.size() || !ParseAddress(host, port, &address)) return false;
  return HearAt(id, &found->second, socket, address);
}

bool Fanout::HearAt(uint32_t id, Member* member, uint32_t socket, const Address& address) {
  if (member->keyed) {
    receiver_->Hear(id, socket, address);
    return true;
  }
  auto& places = member->places;
  const auto same = [&](const std::pair<uint32_t, Address>& place) {
    return place.first == socket && place.second.length == address.length &&
           memcmp(&place.second.storage, &address.storage, address.length) == 0;
  };
  places.erase(std::remove_if(places.begin(), places.end(), same), places.end());
  if (places.size() >= kMaxPlaces) places.erase(places.begin());
  places.emplace_back(socket, address);
  return true;
}

bool Fanout::ConnectTcp(uint32_t id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return false;
  found->second.shard->Connect(id, -1, {});
  return true;
}

bool Fanout::Play(uint32_t id, size_t slot, uint32_t source) {
  const auto found = members_.find(id);
  if (found == members_.end()) return false;
  Shard* const shard = found->second.shard;
  const auto played = sources_.find(source);
  if (played != sources_.end()) {
    Source& wanted = played->second;
    if (std::find(wanted.shards.begin(), wanted.shards.end(), shard) == wanted.shards.end()) {
      shard->OpenSource(source, wanted.clock_rate, wanted.epoch, wanted.fec);
      wanted.shards.push_back(shard);
    }
  }
  shard->Play(id, slot, source);
  return true;
}

bool Fanout::Inject(uint32_t id, std::string packet) {
  const auto found = members_.find(id);
  if (found == members_.end()) return false;
  receiver_->Inject(id, found->second.counters, std::move(packet));
  return true;
}

bool Fanout::SendRtcp(uint32_t id, std::vector<uint8_t> packet) {
  const auto found = members_.find(id);
  if (found == members_.end()) return false;
  found->second.shard->SendRtcp(id, std::move(packet));
  return true;
}

const ViewerCounters* Fanout::viewer(uint32_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : found->second.counters.get();
}

const SendLog* Fanout::log(uint32_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : found->second.log.get();
}

}  // namespace millrace
