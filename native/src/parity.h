// Forward error correction (RFC 5109, one protection level): the combination of several packets of one frame. Computed once for all
// viewers; the parts that differ between viewers are filled in on sending.
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
  // Number of protected packets.
  size_t count = 0;
  // The frame's marker bit is set in one of the packets.
  bool marker = false;
  // All payloads combined with exclusive or, as long as the longest payload.
  std::vector<uint8_t> payload;
};

// Parities of a frame whose payloads lie between `offsets` in `data`. Adjacent packets have different parities, so that a burst of losses
// can be repaired.
std::vector<Parity> MakeParities(const uint8_t* data, const std::vector<uint32_t>& offsets, bool marker);

// Values that all packets of the frame share in one viewer's stream.
struct ParityContext {
  const uint8_t* extension;
  size_t extension_length;
  uint8_t payload_type;
  uint32_t timestamp;
  // Sequence number of packet `first`.
  uint16_t sequence;
  const std::vector<uint32_t>* offsets;
};

// Number of bytes that WriteParity writes.
size_t ParityLength(const Parity& parity, size_t extension_length);
void WriteParity(const Parity& parity, const ParityContext& context, uint8_t* out);

}  // namespace millrace
