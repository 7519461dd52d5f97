// Sends to TCP without Node.js: one call from JavaScript and one system call, without a request object or another turn of the event loop.
// Files that many HTTP viewers request are kept in memory files ("images"), from which the system sends without copying.
#include "tcp.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <memory>

#include "memory_file.h"

namespace millrace {
namespace {

// Node.js sends longer heads and texts.
constexpr size_t kMaxText = 64 * 1024;
// Node.js also sends answers of more pieces.
constexpr size_t kMaxParts = 64;

uint32_t LengthOf(const Arguments& arguments, size_t n) {
  uint32_t length = 0;
  if (arguments.value(n) == nullptr || napi_get_array_length(arguments.env(), arguments.value(n), &length) != napi_ok)
    throw BadArgument{"an array is expected"};
  return length;
}

Bytes ElementOf(const Arguments& arguments, size_t n, uint32_t at) {
  napi_value element = nullptr;
  napi_get_element(arguments.env(), arguments.value(n), at, &element);
  return BytesOf(arguments.env(), element);
}

// The Latin-1 text of an argument, in memory that the next call reuses; empty when the text is too long.
Bytes TextInPlace(const Arguments& arguments, size_t n) {
  thread_local char text[kMaxText + 1];
  size_t length = 0;
  if (arguments.value(n) == nullptr || napi_get_value_string_latin1(arguments.env(), arguments.value(n), text, sizeof text, &length) != napi_ok)
    throw BadArgument{"a string is expected"};
  // A truncated text fills the memory.
  if (length >= kMaxText) return {};
  return {reinterpret_cast<uint8_t*>(text), length};
}

// Node.js finds errors itself, because it gets the bytes next.
size_t Sent(ssize_t result) { return result < 0 ? 0 : static_cast<size_t>(result); }

}  // namespace

// memoryFileOpen(chunks) → handle, or null when the system has no room
napi_value MemoryFileOpen(const Arguments& arguments) {
  napi_env env = arguments.env();
  const uint32_t count = LengthOf(arguments, 0);
  auto file = std::make_shared<MemoryFile>();
  bool whole = file->descriptor() >= 0;
  for (uint32_t n = 0; n < count && whole; n += 1) whole = file->Append(ElementOf(arguments, 0, n));
  napi_value handle = nullptr;
  if (!whole) napi_get_null(env, &handle);
  else napi_create_external(env, new SharedMemoryFile(std::move(file)), [](napi_env, void* data, void*) { delete static_cast<SharedMemoryFile*>(data); },
                            nullptr, &handle);
  return handle;
}

// memoryFileClose(file): frees the memory now. Idempotent.
napi_value MemoryFileClose(const Arguments& arguments) {
  (*arguments.External<SharedMemoryFile>(0))->Close();
  return nullptr;
}

// tcpSend(descriptor, head, chunks) → number of bytes of all of them that the socket took
napi_value TcpSend(const Arguments& arguments) {
  napi_env env = arguments.env();
  const int descriptor = static_cast<int>(arguments.Unsigned(0));
  const Bytes head = TextInPlace(arguments, 1);
  const uint32_t count = LengthOf(arguments, 2);
  if (head.data == nullptr || count >= kMaxParts) return MakeNumber(env, 0);
  iovec parts[kMaxParts] = {{head.data, head.length}};
  for (uint32_t n = 0; n < count; n += 1) {
    const Bytes bytes = ElementOf(arguments, 2, n);
    parts[n + 1] = {bytes.data, bytes.length};
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count + 1;
  return MakeNumber(env, static_cast<double>(Sent(sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT))));
}

// tcpSendMemoryFile(descriptor, head, file, length) → number of bytes of head and file that the socket took; `length` is the file's
napi_value TcpSendMemoryFile(const Arguments& arguments) {
  const int descriptor = static_cast<int>(arguments.Unsigned(0));
  const Bytes head = TextInPlace(arguments, 1);
  const MemoryFile* file = arguments.External<SharedMemoryFile>(2)->get();
  const size_t length = arguments.Unsigned(3);
  if (head.data == nullptr) return MakeNumber(arguments.env(), 0);
  off_t offset = 0;
  size_t sent = Sent(send(descriptor, head.data, head.length, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE));
  if (sent == head.length) sent += Sent(sendfile(descriptor, file->descriptor(), &offset, length));
  return MakeNumber(arguments.env(), static_cast<double>(sent));
}

// tcpReceive(descriptor, into) → number of bytes received, 0 at the end of the stream, -errno, or undefined when nothing has come
napi_value TcpReceive(const Arguments& arguments) {
  const int descriptor = static_cast<int>(arguments.Unsigned(0));
  const Bytes into = BytesOf(arguments.env(), arguments.value(1));
  const ssize_t received = recv(descriptor, into.data, into.length, MSG_DONTWAIT);
  if (received >= 0) return MakeNumber(arguments.env(), static_cast<double>(received));
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return nullptr;
  return MakeNumber(arguments.env(), -errno);
}

}  // namespace millrace
