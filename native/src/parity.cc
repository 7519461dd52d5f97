#include "parity.h"

#include <algorithm>
#include <cstring>

#include "bytes.h"

namespace millrace {
namespace {

// Bits of the short and the long mask.
constexpr size_t kShortMask = 16;
constexpr size_t kLongMask = 48;
// Packets protected by one parity packet.
constexpr size_t kProtected = 10;
constexpr size_t kHeader = 10;

size_t HeadLength(const Parity& parity) { return kHeader + ((parity.mask >> kShortMask) == 0 ? 4 : 8); }

}  // namespace

std::vector<Parity> MakeParities(const uint8_t* data, const std::vector<uint32_t>& offsets, bool marker) {
  std::vector<Parity> parities;
  const size_t packets = offsets.size() - 1;
  for (size_t from = 0; from < packets; from += kLongMask) {
    const size_t block = std::min(kLongMask, packets - from);
    const size_t step = (block + kProtected - 1) / kProtected;
    for (size_t offset = 0; offset < step; offset += 1) {
      Parity parity;
      parity.first = from;
      for (size_t n = offset; n < block; n += step) {
        const uint8_t* payload = data + offsets[from + n];
        const size_t length = offsets[from + n + 1] - offsets[from + n];
        if (parity.payload.size() < length) parity.payload.resize(length);
        for (size_t at = 0; at < length; at += 1) parity.payload[at] ^= payload[at];
        parity.mask |= uint64_t{1} << n;
        parity.count += 1;
        if (marker && from + n + 1 == packets) parity.marker = true;
      }
      parities.push_back(std::move(parity));
    }
  }
  return parities;
}

size_t ParityLength(const Parity& parity, size_t extension_length) {
  return HeadLength(parity) + extension_length + parity.payload.size();
}

//   0                   1                   2                   3
//  |E|L|P|X|  CC   |M| PT recovery |            SN base            |
//  |                          TS recovery                          |
//  |        length recovery        |       protection length       |
//  |                mask, 16 bits; 48 when L is set …              |
//
// Fields that are equal in all packets remain if an odd number of packets is combined, and cancel out if it is even. Send time
// and transport-wide number count as zeros: they differ in every packet, and receivers ignore them here.
void WriteParity(const Parity& parity, const ParityContext& context, uint8_t* out) {
  const bool odd = parity.count % 2 == 1;
  const bool wide = (parity.mask >> kShortMask) != 0;
  uint16_t lengths = 0;
  for (size_t n = 0; n < kLongMask; n += 1) {
    if ((parity.mask >> n & 1) == 0) continue;
    const size_t packet = parity.first + n;
    lengths ^= static_cast<uint16_t>(context.extension_length + (*context.offsets)[packet + 1] - (*context.offsets)[packet]);
  }
  out[0] = static_cast<uint8_t>((wide ? 0x40 : 0) | (odd && context.extension_length > 0 ? 0x10 : 0));
  out[1] = static_cast<uint8_t>((parity.marker ? 0x80 : 0) | (odd ? context.payload_type : 0));
  Write16(out + 2, context.sequence);
  Write32(out + 4, odd ? context.timestamp : 0);
  Write16(out + 8, lengths);
  Write16(out + kHeader, static_cast<uint32_t>(context.extension_length + parity.payload.size()));
  const size_t bytes = wide ? kLongMask / 8 : kShortMask / 8;
  uint8_t* mask = out + kHeader + 2;
  memset(mask, 0, bytes);
  for (size_t n = 0; n < bytes * 8; n += 1) {
    if ((parity.mask >> n & 1) != 0) mask[n / 8] |= static_cast<uint8_t>(0x80 >> (n % 8));
  }
  uint8_t* body = mask + bytes;
  if (odd && context.extension_length > 0) memcpy(body, context.extension, context.extension_length);
  else memset(body, 0, context.extension_length);
  memcpy(body + context.extension_length, parity.payload.data(), parity.payload.size());
}

}  // namespace millrace
