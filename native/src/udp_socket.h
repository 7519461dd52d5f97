// A UDP socket that receives and sends datagrams in batches: recvmmsg, sendmmsg and segmentation offload. Has no thread: the owner polls
// the descriptor and calls it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "segments.h"

namespace millrace {

// One datagram in an array of words shared with JavaScript: the position of its bytes, and its source or destination.
struct Datagram {
  uint32_t offset;
  uint32_t length;
  uint32_t port;
  // Interface of a link-local address.
  uint32_t scope;
  // As on the wire; an IPv4 address uses only the first word.
  uint32_t address[4];
};
static_assert(sizeof(Datagram) == 32);

struct UdpCounters {
  uint64_t datagrams_sent = 0;
  uint64_t send_calls = 0;
  // Datagrams the system refused to send.
  uint64_t send_errors = 0;
  uint64_t datagrams_received = 0;
  uint64_t receive_calls = 0;
};

class UdpSocket {
 public:
  // Maximum of datagrams in one call.
  static constexpr size_t kMaxDatagrams = 64;
  // Longer datagrams are truncated.
  static constexpr size_t kMaxLength = 2048;

  UdpSocket() = default;
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;
  ~UdpSocket() { Close(); }

  // False with `error` set to an errno; `buffer` bytes are requested from the system for each direction.
  bool Open(const std::string& host, uint16_t port, int buffer, int* error);
  void Close();
  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }
  const UdpCounters& counters() const { return counters_; }

  // Receives waiting datagrams, at most kMaxDatagrams; their bytes stay in `received` until the next call. Negative: an errno.
  int Receive(Datagram* datagrams);
  const uint8_t* received(size_t n) const { return arena_.data() + n * kMaxLength; }

  // Sends datagrams `from` to `count`, whose bytes lie in `bytes`. Returns the index of the first datagram that did not fit into the
  // socket, otherwise `count`; datagrams with permanent errors are counted and skipped.
  size_t Send(const uint8_t* bytes, const Datagram* datagrams, size_t from, size_t count);

  // Writes an address in words, for a socket of this family; false when the text is not an address.
  bool Parse(const std::string& text, Datagram* into) const;
  std::string Text(const Datagram& datagram) const;

 private:
  // Limit of remembered hosts that cannot be sent segments.
  static constexpr size_t kMaxWhole = 64;

  bool TakesSegments(const Datagram& to) const;
  void FillAddress(const Datagram& datagram, sockaddr_storage* into) const;
  socklen_t AddressLength() const { return family_ == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  int descriptor_ = -1;
  int family_ = AF_INET;
  uint16_t port_ = 0;
  bool segmented_ = true;
  // Hosts that must be sent single datagrams; the oldest entry is replaced first.
  std::array<Datagram, kMaxWhole> whole_ = {};
  size_t whole_count_ = 0;
  UdpCounters counters_;
  std::vector<uint8_t> arena_;
  std::array<mmsghdr, kMaxDatagrams> headers_ = {};
  std::array<iovec, kMaxDatagrams> vectors_ = {};
  std::array<sockaddr_storage, kMaxDatagrams> addresses_ = {};
  // Datagrams in each message that is sent.
  std::array<size_t, kMaxDatagrams> counts_ = {};
  alignas(cmsghdr) std::array<uint8_t, kMaxDatagrams * kSegmentControl> controls_ = {};
};

}  // namespace millrace
