// The functions of TLS and HTTP/2 for JavaScript: one handle for each connection, one for each certificate.
#include "tls.h"

#include <memory>

#include "http2_session.h"
#include "napi_export.h"
#include "napi_values.h"
#include "tls_session.h"

namespace millrace {
namespace {

// Limit of a text, whose length has a field of 16 bits.
constexpr size_t kMaxText = 64 * 1024;
// Flags in the results of `TlsReceive` and `Http2Flush`, beside the number of bytes.
constexpr uint32_t kShaken = 1;
constexpr uint32_t kSpeaksHttp2 = 2;
constexpr uint32_t kPeerEnded = 4;
constexpr uint32_t kFailed = 8;
constexpr uint32_t kHasRest = 16;
constexpr uint32_t kHasEvents = 32;
constexpr uint32_t kOver = 64;
constexpr uint32_t kFlags = 128;

// A connection; `http2` exists once the client has chosen it.
struct Secure {
  Secure(SSL_CTX* context, int descriptor, const Http2Limits& most) : tls(context, descriptor), limits(most) {}
  // Begins HTTP/2 if the client has chosen it and the handshake is over; false: there is no memory for it.
  bool Choose() {
    if (http2 == nullptr && tls.state() == TlsSession::State::kOpen && tls.speaks_http2()) http2 = std::make_unique<Http2Session>(&tls, limits);
    return http2 == nullptr || http2->ready();
  }

  TlsSession tls;
  Http2Limits limits;
  std::unique_ptr<Http2Session> http2;
};

// The object that JavaScript holds. `tlsClose` empties it, although JavaScript may still hold it.
struct SecureHandle {
  napi_env env;
  std::unique_ptr<Secure> secure;

  void Close() {
    if (secure == nullptr) return;
    secure->tls.Detach();
    if (secure->http2 != nullptr) secure->http2->Release(env);
    secure.reset();
  }
};

Secure* OpenOf(const Arguments& arguments) {
  Secure* secure = arguments.External<SecureHandle>(0)->secure.get();
  if (secure == nullptr) throw BadArgument{"the connection was closed"};
  return secure;
}

Http2Session* Http2Of(const Arguments& arguments) {
  Secure* secure = OpenOf(arguments);
  if (secure->http2 == nullptr) throw BadArgument{"the connection does not speak HTTP/2"};
  return secure->http2.get();
}

uint32_t FlagsOf(const Secure& secure) {
  const TlsSession& tls = secure.tls;
  uint32_t flags = 0;
  if (tls.state() != TlsSession::State::kHandshake && tls.state() != TlsSession::State::kFailed) flags |= kShaken;
  if (secure.http2 != nullptr) flags |= kSpeaksHttp2;
  if (tls.state() == TlsSession::State::kEnded) flags |= kPeerEnded;
  if (tls.state() == TlsSession::State::kFailed) flags |= kFailed;
  if (tls.has_rest()) flags |= kHasRest;
  if (secure.http2 != nullptr && !secure.http2->events().empty()) flags |= kHasEvents;
  if (secure.http2 != nullptr && secure.http2->over()) flags |= kOver;
  return flags;
}

napi_value Told(napi_env env, const Secure& secure, size_t bytes) {
  return MakeNumber(env, static_cast<double>(bytes * kFlags + FlagsOf(secure)));
}

// Asks JavaScript for the context of a server name; an exception there counts as no context.
SSL_CTX* Ask(napi_env env, napi_value choose, const char* name) {
  napi_value receiver = nullptr;
  napi_value context = nullptr;
  napi_get_undefined(env, &receiver);
  napi_value argument = MakeText(env, name);
  if (napi_call_function(env, receiver, choose, 1, &argument, &context) != napi_ok) {
    bool pending = false;
    if (napi_is_exception_pending(env, &pending) == napi_ok && pending) napi_get_and_clear_last_exception(env, &context);
    return nullptr;
  }
  void* data = nullptr;
  return napi_get_value_external(env, context, &data) == napi_ok ? static_cast<SSL_CTX*>(data) : nullptr;
}

// Latin-1, as JavaScript keeps most texts.
std::string LatinText(const Arguments& arguments, size_t n) {
  size_t length = 0;
  if (arguments.value(n) == nullptr || napi_get_value_string_latin1(arguments.env(), arguments.value(n), nullptr, 0, &length) != napi_ok)
    throw BadArgument{"a string is expected"};
  std::string text(length, '\0');
  napi_get_value_string_latin1(arguments.env(), arguments.value(n), text.data(), length + 1, &length);
  return text;
}

napi_value MakeLatinText(napi_env env, const std::string& text) {
  napi_value value = nullptr;
  napi_create_string_latin1(env, text.data(), text.size(), &value);
  return value;
}

// tlsContext(certificate, key, ciphers, suites, groups, oldest, http2) → handle; throws when an argument is unusable
napi_value TlsMakeContext(const Arguments& arguments) {
  napi_env env = arguments.env();
  TlsContextOptions options;
  options.certificate = arguments.Text(0);
  options.key = arguments.Text(1);
  options.ciphers = arguments.Text(2);
  options.suites = arguments.Text(3);
  options.groups = arguments.Text(4);
  options.oldest = static_cast<int>(arguments.Unsigned(5));
  options.http2 = arguments.Boolean(6);
  if (options.http2 && !Nghttp2IsThere()) throw BadArgument{"tlsContext: this node has no nghttp2"};
  std::string error;
  TlsContext context = MakeTlsContext(options, &error);
  OPENSSL_cleanse(options.key.data(), options.key.size());
  if (context == nullptr) {
    napi_throw_error(env, "TLS_CONTEXT", error.c_str());
    return nullptr;
  }
  napi_value handle = nullptr;
  napi_create_external(env, context.release(), [](napi_env, void* data, void*) { SSL_CTX_free(static_cast<SSL_CTX*>(data)); }, nullptr,
                       &handle);
  return handle;
}

// tlsOpen(context, descriptor, streams, headerLines, headerBytes) → handle
napi_value TlsOpen(const Arguments& arguments) {
  auto* context = arguments.External<SSL_CTX>(0);
  const Http2Limits limits = {arguments.Unsigned(2), arguments.Unsigned(3), arguments.Unsigned(4)};
  auto handle = std::make_unique<SecureHandle>();
  handle->env = arguments.env();
  handle->secure = std::make_unique<Secure>(context, static_cast<int>(arguments.Unsigned(1)), limits);
  napi_value value = nullptr;
  napi_create_external(arguments.env(), handle.release(),
                       [](napi_env, void* data, void*) {
                         auto* own = static_cast<SecureHandle*>(data);
                         own->Close();
                         delete own;
                       },
                       nullptr, &value);
  return value;
}

// tlsClose(connection): ends sending. Idempotent.
napi_value TlsClose(const Arguments& arguments) {
  arguments.External<SecureHandle>(0)->Close();
  return nullptr;
}

// tlsReceive(connection, bytes, into, choose) → flags, and above them the number of bytes in `into`, which must have room for `bytes` and a
// record; with HTTP/2 there are events instead. `choose` returns the context for a server name
napi_value TlsReceive(const Arguments& arguments) {
  napi_env env = arguments.env();
  Secure* secure = OpenOf(arguments);
  const Bytes bytes = arguments.Buffer(1);
  const Bytes into = arguments.Buffer(2);
  napi_value asked = arguments.value(3);
  const TlsSession::Choose choose = [env, asked](const char* name) { return Ask(env, asked, name); };
  secure->tls.Push(bytes.data, bytes.length, &choose);
  size_t total = 0;
  size_t got = 0;
  bool sound = true;
  // If `into` is full, OpenSSL returns 0 as well and the remaining bytes would be lost: the caller provides enough room.
  while ((got = secure->tls.Read(into.data + total, into.length - total)) > 0) {
    sound = secure->Choose() && sound;
    if (secure->http2 == nullptr) total += got;
    else if (sound) sound = secure->http2->Receive(into.data, got);
  }
  // The handshake may end without a request.
  sound = secure->Choose() && sound;
  if (secure->http2 != nullptr && secure->http2->ready()) secure->http2->Flush();
  else secure->tls.Flush();
  napi_value told = Told(env, *secure, total);
  if (sound) return told;
  return MakeNumber(env, static_cast<double>(FlagsOf(*secure) | kFailed));
}

// tlsSend(connection, head, chunks, skip) → flags, and above them the number of bytes of `head` (Latin-1) and `chunks` that were sent or
// are kept in the rest; the first `skip` bytes are left out
napi_value TlsSend(const Arguments& arguments) {
  napi_env env = arguments.env();
  TlsSession& tls = OpenOf(arguments)->tls;
  uint32_t count = 0;
  if (arguments.value(2) == nullptr || napi_get_array_length(env, arguments.value(2), &count) != napi_ok)
    throw BadArgument{"an array is expected"};
  thread_local std::string head;
  head = LatinText(arguments, 1);
  auto skip = static_cast<size_t>(arguments.Number(3));
  size_t done = skip;
  // Written in pieces, so that at most one piece more is encrypted than the system takes.
  const auto write = [&](const uint8_t* data, size_t length) {
    const size_t left_out = std::min(skip, length);
    skip -= left_out;
    for (size_t at = left_out; at < length && !tls.blocked();) {
      const size_t piece = std::min(length - at, kMaxText);
      tls.Write(data + at, piece);
      at += piece;
      done += piece;
    }
  };
  write(reinterpret_cast<const uint8_t*>(head.data()), head.size());
  for (uint32_t n = 0; n < count && !tls.blocked(); n += 1) {
    napi_value element = nullptr;
    napi_get_element(env, arguments.value(2), n, &element);
    const Bytes bytes = BytesOf(env, element);
    write(bytes.data, bytes.length);
  }
  tls.Flush();
  return Told(env, *OpenOf(arguments), done);
}

// tlsShut(connection) → flags: ends sending and notifies the client
napi_value TlsShut(const Arguments& arguments) {
  Secure* secure = OpenOf(arguments);
  secure->tls.Shut();
  return Told(arguments.env(), *secure, 0);
}

// tlsTakeRest(connection) → the encrypted bytes that the system did not take; nothing is sent before `tlsRestSent`
napi_value TlsTakeRest(const Arguments& arguments) {
  const std::string rest = OpenOf(arguments)->tls.TakeRest();
  return MakeBuffer(arguments.env(), rest.data(), rest.size());
}

// tlsRestSent(connection): JavaScript has sent the rest that it took
napi_value TlsRestSent(const Arguments& arguments) {
  OpenOf(arguments)->tls.Unblock();
  return nullptr;
}

// tlsError(connection) → reason of the failure
napi_value TlsError(const Arguments& arguments) { return MakeText(arguments.env(), OpenOf(arguments)->tls.error()); }

// http2Respond(connection, stream, status, block, chunks or null) → false if the stream is gone or has a response. Sent with `http2Flush`
napi_value Http2Respond(const Arguments& arguments) {
  napi_env env = arguments.env();
  Http2Session* http2 = Http2Of(arguments);
  bool has_body = false;
  if (arguments.value(4) == nullptr || napi_is_array(env, arguments.value(4), &has_body) != napi_ok)
    throw BadArgument{"an array or null is expected"};
  const bool answered = http2->Respond(env, static_cast<int32_t>(arguments.Unsigned(1)), arguments.Text(2), LatinText(arguments, 3),
                                       has_body ? arguments.value(4) : nullptr);
  napi_value truth = nullptr;
  napi_get_boolean(env, answered, &truth);
  return truth;
}

// http2Control(connection, what, stream, number): 0 resets a stream with an error code, 1 enlarges the window for bytes of a body, 2
// announces that no further requests are accepted. Sent with `http2Flush`
napi_value Http2Control(const Arguments& arguments) {
  Http2Session* http2 = Http2Of(arguments);
  const uint32_t what = arguments.Unsigned(1);
  const auto stream = static_cast<int32_t>(arguments.Unsigned(2));
  const uint32_t number = arguments.Unsigned(3);
  if (what == 0) http2->Reset(stream, number);
  else if (what == 1) http2->Consume(stream, number);
  else http2->GoAway();
  return nullptr;
}

// http2Flush(connection) → flags
napi_value Http2Flush(const Arguments& arguments) {
  Http2Of(arguments)->Flush();
  return Told(arguments.env(), *OpenOf(arguments), 0);
}

// http2Events(connection) → [type, stream, number, text or bytes, …]: the events since the last call
napi_value Http2Events(const Arguments& arguments) {
  napi_env env = arguments.env();
  std::vector<Http2Event> events;
  events.swap(Http2Of(arguments)->events());
  napi_value list = nullptr;
  napi_create_array_with_length(env, events.size() * 4, &list);
  uint32_t at = 0;
  for (const Http2Event& event : events) {
    napi_set_element(env, list, at++, MakeNumber(env, static_cast<double>(event.type)));
    napi_set_element(env, list, at++, MakeNumber(env, event.stream));
    napi_set_element(env, list, at++, MakeNumber(env, event.number));
    napi_set_element(env, list, at++,
                     event.type == Http2EventType::kBody ? MakeBuffer(env, event.text.data(), event.text.size())
                                                         : MakeLatinText(env, event.text));
  }
  return list;
}

}  // namespace

void ExportTls(napi_env env, napi_value exports) {
  Export<TlsMakeContext>(env, exports, "tlsContext");
  Export<TlsOpen>(env, exports, "tlsOpen");
  Export<TlsClose>(env, exports, "tlsClose");
  Export<TlsReceive>(env, exports, "tlsReceive");
  Export<TlsSend>(env, exports, "tlsSend");
  Export<TlsShut>(env, exports, "tlsShut");
  Export<TlsTakeRest>(env, exports, "tlsTakeRest");
  Export<TlsRestSent>(env, exports, "tlsRestSent");
  Export<TlsError>(env, exports, "tlsError");
  Export<Http2Respond>(env, exports, "http2Respond");
  Export<Http2Control>(env, exports, "http2Control");
  Export<Http2Flush>(env, exports, "http2Flush");
  Export<Http2Events>(env, exports, "http2Events");
}

}  // namespace millrace
