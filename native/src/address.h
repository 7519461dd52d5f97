// IP addresses with a port, as text, and sockets at them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace millrace {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

// False when the text is not an IP address, or names a missing interface.
bool ParseAddress(const std::string& host, uint16_t port, Address* address);
// As `ParseAddress`, for an IPv6 address alone: `fe80::1%eth0`, or with the number of the interface (RFC 4007 section 11). `scope` becomes
// that number, 0 without one.
bool ParseIpv6(const std::string& text, void* address, uint32_t* scope);
std::string HostOf(const Address& address);
uint16_t PortOf(const Address& address);
// Opens a UDP socket at the address, for its family only, and asks the system for `buffer` bytes in each direction; `port` becomes the port
// in use. Negative with `errno` set on failure.
int BindUdp(const Address& address, int buffer, uint16_t* port);

}  // namespace millrace
