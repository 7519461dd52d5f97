#include "notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace millrace {
namespace {

// Sends one datagram. Returns 0 or an errno.
int Send(const std::string& path, const std::string& text) {
  sockaddr_un address = {};
  // The name of an abstract socket begins with a NUL, written as `@`, and has no NUL at its end.
  const bool abstract = path[0] == '@';
  if (path.size() + (abstract ? 0 : 1) > sizeof address.sun_path) return ENAMETOOLONG;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  if (abstract) address.sun_path[0] = '\0';
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1));
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  const ssize_t sent =
      sendto(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address), length);
  const int error = sent < 0 ? errno : 0;
  close(descriptor);
  return error;
}

}  // namespace

// notifySend(path, text) → 0 or an errno; never waits
napi_value NotifySend(const Arguments& arguments) {
  const std::string path = arguments.Text(0);
  if (path.size() < 2 || (path[0] != '/' && path[0] != '@')) throw BadArgument{"the path of a socket is expected"};
  return MakeNumber(arguments.env(), Send(path, arguments.Text(1)));
}

}  // namespace millrace
