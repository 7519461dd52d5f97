// Forward error correction (RFC 5109, one protection level): what packets of one frame come to together. Computed once for all
// viewers; what differs between them is filled in when it is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

struct Parity {
  // The first packet of the frame that may be protected.
  size_t first = 0;
  // Bit n: packet `first` + n is protected. At most 48.
  uint64_t mask = 0;
  // How many are.
  size_t count = 0;
  // Of one of them the frame's marker bit is set.
  bool marker = false;
  // All payloads combined with exclusive or, as long as the longest payload.
  std::vector<uint8_t> payload;
};

// Bytes before the protected ones: header, and the level's head with a mask of 48 bits.
constexpr size_t kMostParityHead = 18;

// Parities of a frame whose payloads lie between `offsets` in `data`. Adjacent packets have different parities, so that a burst of losses
// can be repaired.
std::vector<Parity> MakeParities(const uint8_t* data, const std::vector<uint32_t>& offsets, bool marker);

// The values that all packets of one viewer's stream and of the frame share.
struct ParityContext {
  const uint8_t* extension;
  size_t extension_length;
  uint8_t payload_type;
  uint32_t timestamp;
  // Sequence number of packet `first`.
  uint16_t sequence;
  const std::vector<uint32_t>* offsets;
};

// Length of what WriteParity writes.
size_t ParityLength(const Parity& parity, size_t extension_length);
void WriteParity(const Parity& parity, const ParityContext& context, uint8_t* out);

}  // namespace millrace
