#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <unistd.h>

#include <cstdlib>

namespace millrace {

bool ParseIpv6(const std::string& text, void* address, uint32_t* scope) {
  *scope = 0;
  const size_t zone = text.find('%');
  if (inet_pton(AF_INET6, text.substr(0, zone).c_str(), address) != 1) return false;
  if (zone == std::string::npos) return true;
  const std::string name = text.substr(zone + 1);
  *scope = if_nametoindex(name.c_str());
  if (*scope == 0) *scope = static_cast<uint32_t>(strtoul(name.c_str(), nullptr, 10));
  return *scope != 0;
}

bool ParseAddress(const std::string& host, uint16_t port, Address* address) {
  auto* four = reinterpret_cast<sockaddr_in*>(&address->storage);
  if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address->length = sizeof(sockaddr_in);
    return true;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&address->storage);
  *six = {};
  if (!ParseIpv6(host, &six->sin6_addr, &six->sin6_scope_id)) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  address->length = sizeof(sockaddr_in6);
  return true;
}

std::string HostOf(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    // A link-local address is valid on every interface, so an answer needs its interface (RFC 4007 section 11).
    if (six->sin6_scope_id != 0) return std::string(text) + "%" + std::to_string(six->sin6_scope_id);
  } else if (address.storage.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text, sizeof text);
  return text;
}

uint16_t PortOf(const Address& address) {
  return ntohs(address.storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                                                     : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

int BindUdp(const Address& address, int buffer, uint16_t* port) {
  const int descriptor = socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return descriptor;
  const int one = 1;
  // IPv4 has its own socket.
  if (address.storage.ss_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return -1;
  }
  Address actual;
  actual.length = sizeof actual.storage;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&actual.storage), &actual.length);
  *port = PortOf(actual);
  return descriptor;
}

}  // namespace millrace
