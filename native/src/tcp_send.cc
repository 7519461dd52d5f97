// Answers of HTTP, sent in the turn they are made in: one call from JavaScript and one of the system, without a request object and a
// second look by the event loop.
#include "tcp_send.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include "napi-export.h"

namespace millrace {
namespace {

// A longer head or text goes the way of Node.js.
constexpr size_t kMostText = 64 * 1024;
// An answer in more pieces does, too.
constexpr size_t kMostParts = 64;

// The Latin-1 text of an argument, in memory that the next call uses again; no memory when it is too long.
Bytes TextInPlace(const Arguments& arguments, size_t n) {
  thread_local char text[kMostText + 1];
  size_t length = 0;
  if (arguments.value(n) == nullptr || napi_get_value_string_latin1(arguments.env(), arguments.value(n), text, sizeof text, &length) != napi_ok)
    throw BadArgument{"a string is expected"};
  // A text that was cut fills the memory to the last byte.
  if (length >= kMostText) return {};
  return {reinterpret_cast<uint8_t*>(text), length};
}

// Errors are for Node.js to find: the bytes are offered to it next.
size_t Sent(ssize_t result) { return result < 0 ? 0 : static_cast<size_t>(result); }

// tcpSend(descriptor, head, chunks) → how many bytes of them all the socket took
napi_value TcpSend(const Arguments& arguments) {
  napi_env env = arguments.env();
  const int descriptor = static_cast<int>(arguments.Unsigned(0));
  const Bytes head = TextInPlace(arguments, 1);
  uint32_t count = 0;
  if (arguments.value(2) == nullptr || napi_get_array_length(env, arguments.value(2), &count) != napi_ok)
    throw BadArgument{"an array is expected"};
  if (head.data == nullptr || count >= kMostParts) return MakeNumber(env, 0);
  iovec parts[kMostParts] = {{head.data, head.length}};
  for (uint32_t n = 0; n < count; n += 1) {
    napi_value chunk = nullptr;
    napi_get_element(env, arguments.value(2), n, &chunk);
    const Bytes bytes = BytesOf(env, chunk);
    parts[n + 1] = {bytes.data, bytes.length};
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count + 1;
  return MakeNumber(env, static_cast<double>(Sent(sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT))));
}

}  // namespace

void ExportTcpSend(napi_env env, napi_value exports) {
  Export<TcpSend>(env, exports, "tcpSend");
}

}  // namespace millrace
