// Several datagrams of equal length in one message that the kernel splits (UDP_SEGMENT, udp(7)).
#pragma once

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace millrace {

// Limits of the kernel: 64 segments, and one IP packet of 64 KiB.
constexpr size_t kMaxSegments = 60;
constexpr size_t kMaxSegmentedBytes = 60000;
constexpr size_t kSegmentControl = CMSG_SPACE(sizeof(uint16_t));

// `control` must have kSegmentControl bytes that stay valid until the message has been sent.
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

// The kernel, or the device, does not split such messages at all.
inline bool CutsForNobody(int error) { return error == EIO || error == EOPNOTSUPP; }

// The message was refused because of its form: its datagrams may pass one by one. Unless CutsForNobody, this concerns one path only.
inline bool RefusesSegments(int error) { return CutsForNobody(error) || error == EINVAL || error == EMSGSIZE; }

// Sends the datagrams of a message one by one. Returns the number that the system did not take.
inline size_t SendApart(int socket, const uint8_t* bytes, size_t length, size_t segment, const void* to, socklen_t to_length) {
  size_t failed = 0;
  for (size_t at = 0; at < length; at += segment) {
    const ssize_t sent =
        sendto(socket, bytes + at, std::min(segment, length - at), MSG_DONTWAIT, static_cast<const sockaddr*>(to), to_length);
    if (sent < 0) failed += 1;
  }
  return failed;
}

}  // namespace millrace
