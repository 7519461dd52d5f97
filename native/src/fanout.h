// The complete fan-out: ports, sender threads, the receiver thread, and the way back to JavaScript.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "event.h"
#include "receiver.h"
#include "shard.h"

namespace millrace {

// Everything here is called on the main thread.
class Fanout {
 public:
  Fanout(size_t threads, SendMode mode, size_t history, std::function<void()> wake);
  ~Fanout();

  // Opens a UDP port; false with `error` set when it cannot be bound.
  bool Bind(const std::string& host, uint16_t port, uint32_t* id, uint16_t* bound, std::string* error);
  // Sends a datagram of our own (STUN, DTLS); false when the socket does not take it.
  bool Send(uint32_t socket, const std::string& host, uint16_t port, const uint8_t* data, size_t length);

  // `fec`: parities for viewers that can use them. A sender thread spends nothing on a source without a viewer of its own.
  uint32_t OpenSource(uint32_t clock_rate, double epoch, bool fec);
  void CloseSource(uint32_t id);
  // `sizes`: payload bytes of each packet; their sum is `length`.
  bool Push(uint32_t source, uint32_t timestamp, bool keyframe, bool marker, const uint8_t* data, size_t length,
            const std::vector<uint32_t>& sizes);

  uint32_t OpenViewer(std::unique_ptr<Viewer> viewer);
  void CloseViewer(uint32_t id);
  bool SetKeys(uint32_t id, Profile profile, const uint8_t* local_key, const uint8_t* local_salt, const uint8_t* remote_key,
               const uint8_t* remote_salt);
  bool Connect(uint32_t id, uint32_t socket, const std::string& host, uint16_t port);
  bool Hear(uint32_t id, uint32_t socket, const std::string& host, uint16_t port);
  bool ConnectTcp(uint32_t id);
  bool Play(uint32_t id, size_t slot, uint32_t source);
  bool Inject(uint32_t id, std::string packet);
  bool SendRtcp(uint32_t id, std::vector<uint8_t> packet);

  const ViewerCounters* viewer(uint32_t id) const;
  // Null when the viewer's packets carry no transport-wide sequence numbers.
  const SendLog* log(uint32_t id) const;
  EventQueue& events() { return events_; }
  const Receiver& receiver() const { return *receiver_; }
  const std::vector<std::unique_ptr<Shard>>& shards() const { return shards_; }
  size_t viewers() const { return members_.size(); }

 private:
  struct Member {
    Shard* shard;
    std::shared_ptr<ViewerCounters> counters;
    std::shared_ptr<SendLog> log;
    bool keyed = false;
    // Source addresses of the viewer, until its keys are known.
    std::vector<std::pair<uint32_t, Address>> places;
  };
  bool HearAt(uint32_t id, Member* member, uint32_t socket, const Address& address);
  struct Source {
    uint32_t clock_rate = 0;
    double epoch = 0;
    bool fec = false;
    // Sender threads that have a viewer of this source; the other threads do not get its frames.
    std::vector<Shard*> shards;
    uint64_t next_sequence = 0;
    uint64_t next_protected = 0;
  };

  EventQueue events_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Receiver> receiver_;
  std::vector<int> sockets_;
  std::unordered_map<uint32_t, Member> members_;
  std::unordered_map<uint32_t, Source> sources_;
  uint32_t next_id_ = 1;
  uint64_t next_order_ = 0;
  size_t next_shard_ = 0;
};

}  // namespace millrace
