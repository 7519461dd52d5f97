// Several datagrams of equal length as one message that the kernel cuts (UDP_SEGMENT, udp(7)).
#pragma once

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace millrace {

// Limits of the kernel: 64 segments, and one IP packet of 64 KiB.
constexpr size_t kSegments = 60;
constexpr size_t kSegmentedBytes = 60000;
constexpr size_t kSegmentControl = CMSG_SPACE(sizeof(uint16_t));

// `control` has kSegmentControl bytes that stay until the message has left.
inline void CutIntoSegments(msghdr* header, uint8_t* control, size_t length) {
  header->msg_control = control;
  header->msg_controllen = kSegmentControl;
  cmsghdr* message = CMSG_FIRSTHDR(header);
  message->cmsg_level = SOL_UDP;
  message->cmsg_type = UDP_SEGMENT;
  message->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const auto segment = static_cast<uint16_t>(length);
  memcpy(CMSG_DATA(message), &segment, sizeof segment);
}

}  // namespace millrace
