#include "udp_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "address.h"

namespace millrace {
namespace {

// Compares addresses without ports.
bool IsSameHost(const Datagram& one, const Datagram& other) {
  return one.scope == other.scope && memcmp(one.address, other.address, sizeof one.address) == 0;
}

}  // namespace

bool UdpSocket::Open(const std::string& host, uint16_t port, int buffer, int* error) {
  Address address;
  if (!ParseAddress(host, port, &address)) {
    *error = EINVAL;
    return false;
  }
  family_ = address.storage.ss_family;
  descriptor_ = BindUdp(address, buffer, &port_);
  if (descriptor_ < 0) {
    *error = errno;
    return false;
  }
  arena_.resize(kMaxDatagrams * kMaxLength);
  return true;
}

void UdpSocket::Close() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

int UdpSocket::Receive(Datagram* datagrams) {
  for (size_t n = 0; n < kMaxDatagrams; n += 1) {
    vectors_[n] = {arena_.data() + n * kMaxLength, kMaxLength};
    msghdr& header = headers_[n].msg_hdr;
    header = {};
    header.msg_name = &addresses_[n];
    header.msg_namelen = sizeof addresses_[n];
    header.msg_iov = &vectors_[n];
    header.msg_iovlen = 1;
  }
  int count = 0;
  do {
    count = recvmmsg(descriptor_, headers_.data(), kMaxDatagrams, MSG_DONTWAIT, nullptr);
  } while (count < 0 && errno == EINTR);
  counters_.receive_calls += 1;
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
  counters_.datagrams_received += static_cast<uint64_t>(count);
  uint32_t offset = 0;
  for (int n = 0; n < count; n += 1) {
    Datagram& datagram = datagrams[n];
    datagram = {};
    datagram.offset = offset;
    datagram.length = headers_[n].msg_len;
    offset += datagram.length;
    if (family_ == AF_INET6) {
      const auto& from = reinterpret_cast<const sockaddr_in6&>(addresses_[n]);
      datagram.port = ntohs(from.sin6_port);
      datagram.scope = from.sin6_scope_id;
      memcpy(datagram.address, &from.sin6_addr, sizeof datagram.address);
    } else {
      const auto& from = reinterpret_cast<const sockaddr_in&>(addresses_[n]);
      datagram.port = ntohs(from.sin_port);
      memcpy(datagram.address, &from.sin_addr, sizeof from.sin_addr);
    }
  }
  return count;
}

size_t UdpSocket::Send(const uint8_t* bytes, const Datagram* datagrams, size_t from, size_t count) {
  while (from < count) {
    size_t messages = 0;
    size_t next = from;
    while (next < count && messages < kMaxDatagrams) {
      const Datagram& first = datagrams[next];
      size_t length = first.length;
      size_t segments = 1;
      const bool segmented = segmented_ && TakesSegments(first);
      for (; segmented && next + segments < count && segments < kMaxSegments; segments += 1) {
        const Datagram& before = datagrams[next + segments - 1];
        const Datagram& after = datagrams[next + segments];
        // All segments but the last must have the same length.
        if (before.length != first.length || after.length > first.length || after.length == 0) break;
        if (after.offset != before.offset + before.length || length + after.length > kMaxSegmentedBytes) break;
        // Compares port, scope and address.
        if (memcmp(&after.port, &first.port, sizeof(Datagram) - offsetof(Datagram, port)) != 0) break;
        length += after.length;
      }
      vectors_[messages] = {const_cast<uint8_t*>(bytes) + first.offset, length};
      msghdr& header = headers_[messages].msg_hdr;
      header = {};
      FillAddress(first, &addresses_[messages]);
      header.msg_name = &addresses_[messages];
      header.msg_namelen = AddressLength();
      header.msg_iov = &vectors_[messages];
      header.msg_iovlen = 1;
      if (segments > 1) CutIntoSegments(&header, controls_.data() + messages * kSegmentControl, first.length);
      counts_[messages] = segments;
      next += segments;
      messages += 1;
    }
    const int sent = sendmmsg(descriptor_, headers_.data(), static_cast<unsigned int>(messages), MSG_DONTWAIT);
    counters_.send_calls += 1;
    for (int n = 0; n < sent; n += 1) {
      counters_.datagrams_sent += counts_[n];
      from += counts_[n];
    }
    if (sent >= 0) continue;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return from;
    if (counts_[0] > 1 && RefusesSegments(errno)) {
      if (CutsForNobody(errno)) segmented_ = false;
      const msghdr& message = headers_[0].msg_hdr;
      const size_t failed = SendApart(descriptor_, bytes + datagrams[from].offset, message.msg_iov->iov_len, datagrams[from].length,
                                      message.msg_name, message.msg_namelen);
      counters_.send_calls += counts_[0];
      counters_.send_errors += failed;
      counters_.datagrams_sent += counts_[0] - failed;
      // All datagrams passed one by one, so segmentation was the problem: later blocks to this host avoid it.
      if (failed == 0) {
        whole_[whole_count_ % kMaxWhole] = datagrams[from];
        whole_count_ += 1;
      }
    } else {
      counters_.send_errors += counts_[0];
    }
    from += counts_[0];
  }
  return count;
}

bool UdpSocket::TakesSegments(const Datagram& to) const {
  const auto end = whole_.begin() + std::min(whole_count_, kMaxWhole);
  return std::none_of(whole_.begin(), end, [&to](const Datagram& host) { return IsSameHost(host, to); });
}

bool UdpSocket::Parse(const std::string& text, Datagram* into) const {
  memset(into->address, 0, sizeof into->address);
  into->scope = 0;
  if (family_ == AF_INET) return inet_pton(AF_INET, text.c_str(), into->address) == 1;
  return ParseIpv6(text, into->address, &into->scope);
}

std::string UdpSocket::Text(const Datagram& datagram) const {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family_, datagram.address, text, sizeof text);
  char name[IF_NAMESIZE] = "";
  const bool local = family_ == AF_INET6 && datagram.scope != 0 && if_indextoname(datagram.scope, name) != nullptr;
  return local ? std::string(text) + "%" + name : text;
}

void UdpSocket::FillAddress(const Datagram& datagram, sockaddr_storage* into) const {
  if (family_ == AF_INET6) {
    auto* address = reinterpret_cast<sockaddr_in6*>(into);
    *address = {};
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(static_cast<uint16_t>(datagram.port));
    address->sin6_scope_id = datagram.scope;
    memcpy(&address->sin6_addr, datagram.address, sizeof address->sin6_addr);
  } else {
    auto* address = reinterpret_cast<sockaddr_in*>(into);
    *address = {};
    address->sin_family = AF_INET;
    address->sin_port = htons(static_cast<uint16_t>(datagram.port));
    memcpy(&address->sin_addr, datagram.address, sizeof address->sin_addr);
  }
}

}  // namespace millrace
