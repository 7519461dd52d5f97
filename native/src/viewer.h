// Frames, sources and viewers as the sender threads know them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "event.h"
#include "parity.h"
#include "send_log.h"
#include "srtp.h"

namespace millrace {

// One frame, packetised: shared by all threads and by the retransmission history, never changed.
struct Frame {
  // Order of the pushes over all sources.
  uint64_t order = 0;
  uint64_t first_sequence = 0;
  // First sequence number for viewers whose numbers count parities, too.
  uint64_t first_protected = 0;
  uint32_t timestamp = 0;
  bool keyframe = false;
  // The last packet carries the marker bit (video).
  bool marker = false;
  std::vector<uint8_t> payloads;
  // Offset of each packet in the payloads; one more entry than packets.
  std::vector<uint32_t> offsets;
  // Sent after the packets, to viewers with error correction.
  std::vector<Parity> parities;

  size_t packets() const { return offsets.size() - 1; }
  const uint8_t* payload(size_t n) const { return payloads.data() + offsets[n]; }
  size_t payload_length(size_t n) const { return offsets[n + 1] - offsets[n]; }
};
using FrameRef = std::shared_ptr<const Frame>;

// Written by one thread, read by any.
struct ViewerCounters {
  std::atomic<uint64_t> packets{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> nacked{0};
  std::atomic<uint64_t> resent{0};
  std::atomic<uint64_t> send_errors{0};
  // Received packets that were forged, replayed or malformed.
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> received{0};
  // Bytes that came over TCP and wait for the receiver; written by two threads.
  std::atomic<size_t> injected{0};
};

struct SourceQueue;

// Maximum of retransmissions in a burst: a large keyframe, or a fifth of a second of a large stream.
constexpr double kMaxResendBurst = 150;

// One RTP stream to one viewer.
struct Slot {
  uint32_t ssrc = 0;
  uint32_t rtx_ssrc = 0;
  uint8_t payload_type = 0;
  // 0: the viewer does not accept retransmissions.
  uint8_t rtx_payload_type = 0;
  // Payload types of RED (RFC 2198) and of the parities in it (ULPFEC); 0: none.
  uint8_t red_payload_type = 0;
  uint8_t fec_payload_type = 0;
  // Header extension (RFC 8285, one-byte form) with its 4-byte header; empty: none.
  std::vector<uint8_t> extension;
  // Offsets in `extension` that change with every packet; 0: absent.
  size_t send_time_at = 0;
  size_t transport_sequence_at = 0;

  SourceQueue* source = nullptr;
  // The source that takes over with its next keyframe.
  SourceQueue* next = nullptr;
  // Index of the next packet: roll-over counter and sequence number in one (RFC 3711 section 3.3.1).
  uint64_t next_index = 0;
  uint64_t rtx_index = 0;
  // Source and sequence number of the packets with indices from `from` on.
  struct Anchor {
    const SourceQueue* source = nullptr;
    uint64_t from = 0;
    uint64_t sequence = 0;
  };
  Anchor anchors[4];
  // Recent retransmissions, so that one loss reported twice costs one packet.
  struct Resent {
    uint64_t index = UINT64_MAX;
    int64_t at = 0;
  };
  Resent resent[64];
  uint32_t sent_packets = 0;
  uint32_t sent_octets = 0;
  uint32_t last_timestamp = 0;
  // The first frame of a new source, if the old source has sent a frame with the same timestamp: its timestamp is increased, because
  // players merge packets of equal timestamps into one frame.
  uint64_t moved_sequence = UINT64_MAX;
  uint32_t moved_from = 0;
  uint32_t moved_to = 0;
};

struct Viewer {
  uint32_t id = 0;
  // -1: over TCP, through JavaScript.
  int socket = -1;
  bool reachable = false;
  Address address;
  // The path does not take segmented messages: it is narrower than a segment, or its device cannot split them.
  bool whole_datagrams = false;
  SrtpCipher rtp;
  SrtpCipher rtcp;
  bool keyed = false;
  uint32_t rtcp_index = 0;
  uint16_t transport_sequence = 0;
  // Null when the packets carry no transport-wide sequence numbers.
  std::shared_ptr<SendLog> log;
  std::vector<std::unique_ptr<Slot>> slots;
  std::string cname;
  int64_t next_report = 0;
  // Number of retransmissions that are allowed now.
  double resend_budget = kMaxResendBurst;
  std::string tcp;
  std::shared_ptr<ViewerCounters> counters;
};

// A source in one sender thread: waiting frames, history, and the recipients.
struct SourceQueue {
  uint32_t id = 0;
  uint32_t clock_rate = 0;
  // The frames have parities.
  bool fec = false;
  // Wall clock at RTP timestamp 0, ms since the Unix epoch.
  double epoch = 0;
  std::deque<FrameRef> pending;
  // Next packet of the front frame.
  size_t cursor = 0;
  int64_t due = 0;
  bool skipping = false;
  struct Recipient {
    Viewer* viewer = nullptr;
    Slot* slot = nullptr;
  };
  std::vector<Recipient> recipients;
  // They get the source from its next keyframe on.
  std::vector<Recipient> joining;
  struct Kept {
    FrameRef frame;
    uint32_t packet = 0;
  };
  std::vector<Kept> history;
  // By sequence numbers that count parities; empty without parities.
  std::vector<Kept> protected_history;
};

}  // namespace millrace
