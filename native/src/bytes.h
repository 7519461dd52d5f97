// Big-endian numbers in packets.
#pragma once

#include <cstdint>

namespace millrace {

inline uint16_t Read16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t Read32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 | p[3];
}
inline void Write16(uint8_t* p, uint32_t value) {
  p[0] = static_cast<uint8_t>(value >> 8);
  p[1] = static_cast<uint8_t>(value);
}
inline void Write24(uint8_t* p, uint32_t value) {
  p[0] = static_cast<uint8_t>(value >> 16);
  Write16(p + 1, value);
}
inline void Write32(uint8_t* p, uint32_t value) {
  Write16(p, value >> 16);
  Write16(p + 2, value);
}

}  // namespace millrace
