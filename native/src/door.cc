// A listening socket that accepts nothing: connections wait in the kernel until a thread takes the socket over. The first connection is
// reported.
#include "door.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <memory>
#include <string>

#include "address.h"

namespace millrace {
namespace {

// Lives until JavaScript has dropped it and the event loop has closed its handle.
struct Door {
  napi_env env = nullptr;
  napi_ref callback = nullptr;
  napi_async_context context = nullptr;
  napi_async_cleanup_hook_handle hook = nullptr;
  uv_poll_t poll = {};
  int descriptor = -1;
  bool closing = false;
  bool gone = false;
  bool forgotten = false;
};

void OnGone(uv_handle_t* handle) {
  auto* door = static_cast<Door*>(handle->data);
  door->gone = true;
  if (door->hook != nullptr) napi_remove_async_cleanup_hook(door->hook);
  door->hook = nullptr;
  if (door->forgotten) delete door;
}

// Closes the descriptor at once; the memory follows when the event loop has closed the handle. Idempotent.
void CloseDoor(Door* door) {
  if (door->closing) return;
  door->closing = true;
  uv_poll_stop(&door->poll);
  uv_close(reinterpret_cast<uv_handle_t*>(&door->poll), OnGone);
  close(door->descriptor);
  napi_delete_reference(door->env, door->callback);
  napi_async_destroy(door->env, door->context);
}

void CloseAtExit(napi_async_cleanup_hook_handle, void* data) { CloseDoor(static_cast<Door*>(data)); }

void ForgetDoor(napi_env, void* data, void*) {
  auto* door = static_cast<Door*>(data);
  door->forgotten = true;
  if (door->gone) delete door;
  else CloseDoor(door);
}

// The first connection, or a socket error, which the next owner of the socket handles.
void OnKnock(uv_poll_t* poll, int, int) {
  auto* door = static_cast<Door*>(poll->data);
  // The connection stays in the queue and would be reported repeatedly.
  uv_poll_stop(poll);
  napi_env env = door->env;
  napi_handle_scope scope = nullptr;
  napi_open_handle_scope(env, &scope);
  napi_value callback = nullptr;
  napi_value receiver = nullptr;
  napi_get_reference_value(env, door->callback, &callback);
  napi_get_global(env, &receiver);
  if (napi_make_callback(env, door->context, receiver, callback, 0, nullptr, nullptr) == napi_pending_exception) {
    // The callback is ours and must not throw; an exception counts as uncaught.
    napi_value error = nullptr;
    napi_get_and_clear_last_exception(env, &error);
    napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}

// A socket that shares its port with other processes of this user. Negative with `errno` set on failure.
int Listen(const Address& address, int backlog) {
  const int family = address.storage.ss_family;
  const int descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return descriptor;
  const int one = 1;
  const bool listens = setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                       setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0 &&
                       (family != AF_INET6 || setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
                       bind(descriptor, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0 &&
                       listen(descriptor, backlog) == 0;
  if (listens) return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

}  // namespace

// doorOpen(host, port, backlog, callback()) → [handle, port, descriptor]; the callback is called once, with the first connection
napi_value DoorOpen(const Arguments& arguments) {
  napi_env env = arguments.env();
  napi_valuetype type = napi_undefined;
  if (arguments.value(3) == nullptr || napi_typeof(env, arguments.value(3), &type) != napi_ok || type != napi_function)
    throw BadArgument{"doorOpen: a callback is expected"};
  const std::string host = arguments.Text(0);
  const auto port = static_cast<uint16_t>(arguments.Unsigned(1));
  const auto backlog = static_cast<int>(arguments.Unsigned(2));
  Address address;
  const bool parsed = ParseAddress(host, port, &address);
  const int descriptor = parsed ? Listen(address, backlog) : -1;
  if (descriptor < 0) {
    const char* name = uv_err_name(parsed ? -errno : -EINVAL);
    napi_throw_error(env, name, (std::string("listen ") + name + " " + host + ":" + std::to_string(port)).c_str());
    return nullptr;
  }
  auto door = std::make_unique<Door>();
  door->descriptor = descriptor;
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok || uv_poll_init(loop, &door->poll, descriptor) != 0) {
    close(descriptor);
    throw BadArgument{"doorOpen: the event loop does not take the socket"};
  }
  Door* raw = door.release();
  raw->env = env;
  raw->poll.data = raw;
  napi_create_reference(env, arguments.value(3), 1, &raw->callback);
  napi_async_init(env, nullptr, MakeText(env, "millrace door"), &raw->context);
  napi_add_async_cleanup_hook(env, CloseAtExit, raw, &raw->hook);
  uv_poll_start(&raw->poll, UV_READABLE, OnKnock);
  Address bound;
  bound.length = sizeof bound.storage;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length);
  napi_value handle = nullptr;
  napi_value opened = nullptr;
  napi_create_external(env, raw, ForgetDoor, nullptr, &handle);
  napi_create_array_with_length(env, 3, &opened);
  napi_set_element(env, opened, 0, handle);
  napi_set_element(env, opened, 1, MakeNumber(env, PortOf(bound)));
  napi_set_element(env, opened, 2, MakeNumber(env, descriptor));
  return opened;
}

// doorClose(door): descriptors from `doorShare` stay open. Idempotent.
napi_value DoorClose(const Arguments& arguments) {
  CloseDoor(arguments.External<Door>(0));
  return nullptr;
}

// doorShare(descriptor) → another descriptor of the same socket, or -errno
napi_value DoorShare(const Arguments& arguments) {
  const int shared = fcntl(static_cast<int>(arguments.Unsigned(0)), F_DUPFD_CLOEXEC, 0);
  return MakeNumber(arguments.env(), shared < 0 ? -errno : shared);
}

}  // namespace millrace
