#include "udp.h"

#include <uv.h>

#include <cstring>
#include <memory>

#include "udp_socket.h"

namespace millrace {
namespace {

// Batches read in a row before the event loop continues: a thousand datagrams.
constexpr int kMaxBatches = 16;
constexpr size_t kWords = sizeof(Datagram) / sizeof(uint32_t);

// Events of the callback; each has two numbers.
enum class UdpEvent : uint32_t {
  // Numbers of datagrams and of bytes: the shared words describe the datagrams, and udpTake returns their bytes.
  kReceived = 0,
  // The socket has room for sending again.
  kWritable = 1,
  // An errno; udpErrorText has its text.
  kFailed = 2,
  // The requested time has passed.
  kAlarm = 3,
};

// A socket with its callback into JavaScript. Lives until JavaScript has dropped it and the event loop has closed its handles.
struct UdpPort {
  napi_env env = nullptr;
  napi_ref callback = nullptr;
  napi_ref words = nullptr;
  Datagram* received = nullptr;
  napi_async_context context = nullptr;
  napi_async_cleanup_hook_handle hook = nullptr;
  uv_poll_t poll = {};
  uv_timer_t timer = {};
  // Handles (`poll`, `timer`) that the event loop has not closed.
  int held = 2;
  int taken = 0;
  // The events that `poll` waits for.
  int awaited = UV_READABLE;
  UdpSocket socket;
  bool closing = false;
  bool forgotten = false;
};

void OnGone(uv_handle_t* handle) {
  auto* port = static_cast<UdpPort*>(handle->data);
  port->held -= 1;
  if (port->held > 0) return;
  if (port->hook != nullptr) napi_remove_async_cleanup_hook(port->hook);
  port->hook = nullptr;
  if (port->forgotten) delete port;
}

// Closes the port at once; the memory follows when the event loop has closed the handles. Idempotent.
void ClosePort(UdpPort* port) {
  if (port->closing) return;
  port->closing = true;
  uv_poll_stop(&port->poll);
  uv_close(reinterpret_cast<uv_handle_t*>(&port->poll), OnGone);
  uv_close(reinterpret_cast<uv_handle_t*>(&port->timer), OnGone);
  port->socket.Close();
  if (port->callback != nullptr) napi_delete_reference(port->env, port->callback);
  if (port->words != nullptr) napi_delete_reference(port->env, port->words);
  if (port->context != nullptr) napi_async_destroy(port->env, port->context);
  port->callback = nullptr;
  port->words = nullptr;
  port->context = nullptr;
}

void CloseAtExit(napi_async_cleanup_hook_handle, void* data) { ClosePort(static_cast<UdpPort*>(data)); }

void ForgetPort(napi_env, void* data, void*) {
  auto* port = static_cast<UdpPort*>(data);
  port->forgotten = true;
  if (port->held == 0) delete port;
  else ClosePort(port);
}

void Tell(UdpPort* port, UdpEvent event, double first = 0, double second = 0) {
  napi_env env = port->env;
  napi_value callback = nullptr;
  napi_value receiver = nullptr;
  napi_get_reference_value(env, port->callback, &callback);
  napi_get_global(env, &receiver);
  napi_value arguments[] = {MakeNumber(env, static_cast<double>(event)), MakeNumber(env, first), MakeNumber(env, second)};
  if (napi_make_callback(env, port->context, receiver, callback, 3, arguments, nullptr) == napi_pending_exception) {
    // The callback is ours and must not throw; an exception counts as uncaught.
    napi_value error = nullptr;
    napi_get_and_clear_last_exception(env, &error);
    napi_fatal_exception(env, error);
  }
}

// Reports one batch; true if more may wait.
bool TellDatagrams(UdpPort* port) {
  const int count = port->socket.Receive(port->received);
  if (count < 0) Tell(port, UdpEvent::kFailed, -count);
  if (count <= 0) return false;
  const Datagram& last = port->received[count - 1];
  port->taken = count;
  Tell(port, UdpEvent::kReceived, count, last.offset + last.length);
  return static_cast<size_t>(count) == UdpSocket::kMaxDatagrams && !port->closing;
}

void OnPoll(uv_poll_t* poll, int status, int events);

void Await(UdpPort* port, int events) {
  port->awaited = events;
  uv_poll_start(&port->poll, events, OnPoll);
}

void OnPoll(uv_poll_t* poll, int status, int events) {
  auto* port = static_cast<UdpPort*>(poll->data);
  napi_handle_scope scope = nullptr;
  napi_open_handle_scope(port->env, &scope);
  if (status < 0) {
    // The event loop has stopped polling, for room as well; reading the error clears it.
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(port->socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
    Await(port, port->awaited);
    Tell(port, UdpEvent::kFailed, error == 0 ? -status : error);
  } else {
    if ((events & UV_WRITABLE) != 0) {
      Await(port, UV_READABLE);
      Tell(port, UdpEvent::kWritable);
    }
    if ((events & UV_READABLE) != 0 && !port->closing) {
      for (int batch = 0; batch < kMaxBatches && TellDatagrams(port); batch += 1) continue;
    }
  }
  napi_close_handle_scope(port->env, scope);
}

void OnTimer(uv_timer_t* timer) {
  auto* port = static_cast<UdpPort*>(timer->data);
  napi_handle_scope scope = nullptr;
  napi_open_handle_scope(port->env, &scope);
  Tell(port, UdpEvent::kAlarm);
  napi_close_handle_scope(port->env, scope);
}

UdpPort* OpenPort(const Arguments& arguments) {
  auto* port = arguments.External<UdpPort>(0);
  if (port->closing) throw BadArgument{"the socket was closed"};
  return port;
}

}  // namespace

// udpOpen(host, port, buffer, words: Uint32Array of 8 for each of 64 datagrams, callback(event, first, second)) → [handle, port]
napi_value UdpOpen(const Arguments& arguments) {
  napi_env env = arguments.env();
  size_t length = 0;
  uint32_t* words = arguments.WordsInPlace(3, &length);
  if (length != UdpSocket::kMaxDatagrams * kWords) throw BadArgument{"udpOpen: wrong number of words"};
  napi_valuetype type = napi_undefined;
  if (arguments.value(4) == nullptr || napi_typeof(env, arguments.value(4), &type) != napi_ok || type != napi_function)
    throw BadArgument{"udpOpen: a callback is expected"};
  const std::string host = arguments.Text(0);
  auto port = std::make_unique<UdpPort>();
  int error = 0;
  if (!port->socket.Open(host, static_cast<uint16_t>(arguments.Unsigned(1)), static_cast<int>(arguments.Unsigned(2)), &error)) {
    const std::string text = std::string("bind ") + uv_err_name(-error) + " " + host + ":" + std::to_string(arguments.Unsigned(1));
    napi_throw_error(env, uv_err_name(-error), text.c_str());
    return nullptr;
  }
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok || uv_poll_init(loop, &port->poll, port->socket.descriptor()) != 0)
    throw BadArgument{"udpOpen: the event loop does not take the socket"};
  UdpPort* raw = port.release();
  raw->env = env;
  raw->poll.data = raw;
  uv_timer_init(loop, &raw->timer);
  raw->timer.data = raw;
  raw->received = reinterpret_cast<Datagram*>(words);
  napi_create_reference(env, arguments.value(3), 1, &raw->words);
  napi_create_reference(env, arguments.value(4), 1, &raw->callback);
  napi_async_init(env, nullptr, MakeText(env, "millrace udp"), &raw->context);
  napi_add_async_cleanup_hook(env, CloseAtExit, raw, &raw->hook);
  Await(raw, UV_READABLE);
  napi_value handle = nullptr;
  napi_value pair = nullptr;
  napi_create_external(env, raw, ForgetPort, nullptr, &handle);
  napi_create_array_with_length(env, 2, &pair);
  napi_set_element(env, pair, 0, handle);
  napi_set_element(env, pair, 1, MakeNumber(env, raw->socket.port()));
  return pair;
}

// udpClose(socket)
napi_value UdpClose(const Arguments& arguments) {
  ClosePort(arguments.External<UdpPort>(0));
  return nullptr;
}

// udpSend(socket, bytes, words, from, count) → index of the first datagram that found no room, otherwise count
napi_value UdpSend(const Arguments& arguments) {
  UdpPort* port = OpenPort(arguments);
  const Bytes bytes = arguments.Buffer(1);
  size_t length = 0;
  const auto* datagrams = reinterpret_cast<const Datagram*>(arguments.WordsInPlace(2, &length));
  const size_t from = arguments.Unsigned(3);
  const size_t count = arguments.Unsigned(4);
  if (from > count || count > length / kWords) throw BadArgument{"udpSend: more datagrams than words"};
  for (size_t n = from; n < count; n += 1) {
    if (datagrams[n].offset > bytes.length || datagrams[n].length > bytes.length - datagrams[n].offset)
      throw BadArgument{"udpSend: a datagram leaves the bytes"};
  }
  return MakeNumber(arguments.env(), static_cast<double>(port->socket.Send(bytes.data, datagrams, from, count)));
}

// udpTake(socket, into, at): writes the bytes of the reported datagrams; only once, during their report
napi_value UdpTake(const Arguments& arguments) {
  UdpPort* port = OpenPort(arguments);
  const Bytes into = arguments.Buffer(1);
  const size_t at = arguments.Unsigned(2);
  for (int n = 0; n < port->taken; n += 1) {
    const Datagram& datagram = port->received[n];
    if (at > into.length || datagram.offset + datagram.length > into.length - at) throw BadArgument{"udpTake: the bytes do not fit"};
    memcpy(into.data + at + datagram.offset, port->socket.received(n), datagram.length);
  }
  return nullptr;
}

// udpAlarm(socket, ms): reports that this time has passed; a new time replaces the previous one
napi_value UdpAlarm(const Arguments& arguments) {
  uv_timer_start(&OpenPort(arguments)->timer, OnTimer, arguments.Unsigned(1), 0);
  return nullptr;
}

// udpErrorText(number) → name and words
napi_value UdpErrorText(const Arguments& arguments) {
  const int error = -static_cast<int>(arguments.Unsigned(0));
  return MakeText(arguments.env(), std::string(uv_err_name(error)) + ": " + uv_strerror(error));
}

// udpAwaitRoom(socket): reports once when there is room for sending
napi_value UdpAwaitRoom(const Arguments& arguments) {
  Await(OpenPort(arguments), UV_READABLE | UV_WRITABLE);
  return nullptr;
}

// udpParse(socket, address, words of one datagram) → whether the text is an address that the socket can reach
napi_value UdpParse(const Arguments& arguments) {
  size_t length = 0;
  uint32_t* words = arguments.WordsInPlace(2, &length);
  if (length < kWords) throw BadArgument{"udpParse: too few words"};
  napi_value truth = nullptr;
  const bool parsed = OpenPort(arguments)->socket.Parse(arguments.Text(1), reinterpret_cast<Datagram*>(words));
  napi_get_boolean(arguments.env(), parsed, &truth);
  return truth;
}

// udpText(socket, n) → source address of the n-th datagram of the last batch
napi_value UdpText(const Arguments& arguments) {
  UdpPort* port = OpenPort(arguments);
  const size_t n = arguments.Unsigned(1);
  if (n >= UdpSocket::kMaxDatagrams) throw BadArgument{"udpText: no such datagram"};
  return MakeText(arguments.env(), port->socket.Text(port->received[n]));
}

// udpCounters(socket) → object
napi_value UdpFigures(const Arguments& arguments) {
  napi_env env = arguments.env();
  const UdpCounters& counters = arguments.External<UdpPort>(0)->socket.counters();
  napi_value object = nullptr;
  napi_create_object(env, &object);
  Set(env, object, "datagramsSent", static_cast<double>(counters.datagrams_sent));
  Set(env, object, "sendCalls", static_cast<double>(counters.send_calls));
  Set(env, object, "sendErrors", static_cast<double>(counters.send_errors));
  Set(env, object, "datagramsReceived", static_cast<double>(counters.datagrams_received));
  Set(env, object, "receiveCalls", static_cast<double>(counters.receive_calls));
  return object;
}

}  // namespace millrace
