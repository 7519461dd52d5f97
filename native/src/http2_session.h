// HTTP/2 of one connection, server side: nghttp2 over a TLS session. Requests and their progress are events for JavaScript. Bodies of
// answers are encrypted without being copied.
#pragma once

#include <node_api.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "napi_values.h"
#include "nghttp2_api.h"
#include "tls_session.h"

namespace millrace {

// Limits for what a client may send.
struct Http2Limits {
  uint32_t streams = 0;
  size_t header_lines = 0;
  size_t header_bytes = 0;
};

enum class Http2EventType : uint32_t {
  // `text`: "\nname: value\n…\n" with the pseudo headers first; `number`: 1 when no body follows.
  kRequest = 0,
  // `text`: bytes of a request body.
  kBody = 1,
  kBodyEnd = 2,
  // `number`: 1 when the answer was sent completely.
  kClosed = 3,
};

struct Http2Event {
  Http2EventType type;
  int32_t stream;
  uint32_t number;
  std::string text;
};

class Http2Session {
 public:
  Http2Session(TlsSession* tls, const Http2Limits& limits);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  bool ready() const { return session_ != nullptr; }
  // False: the client broke the protocol, and the closing frames must be flushed.
  bool Receive(const uint8_t* data, size_t length);
  // Responds; `body`, an array of Uint8Arrays, is held until the stream is closed; null: no body.
  // False: the stream is closed, or has a response already.
  bool Respond(napi_env env, int32_t stream, const std::string& status, const std::string& block, napi_value body);
  void Reset(int32_t stream, uint32_t error);
  // Allows the client to send this many more bytes of a body.
  void Consume(int32_t stream, size_t length);
  // Announces that no further requests are accepted.
  void GoAway();
  // Passes everything that can be sent now to TLS.
  void Flush();
  // The session neither reads nor writes any further.
  bool over() const;

  std::vector<Http2Event>& events() { return events_; }
  // Releases all bodies; must be called with the environment they came from, before destruction.
  void Release(napi_env env);

 private:
  struct Stream {
    std::string head;
    size_t lines = 0;
    // The request was reported; all of it has come.
    bool told = false;
    bool whole = false;
    bool answered = false;
    bool sent = false;
    std::vector<Bytes> body;
    size_t at = 0;
    size_t offset = 0;
    napi_ref held = nullptr;
    napi_env env = nullptr;
  };

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame_hd* frame, void* user);
  static int OnHeader(nghttp2_session*, const nghttp2_frame_hd* frame, const uint8_t* name, size_t name_length, const uint8_t* value,
                      size_t value_length, uint8_t flags, void* user);
  static int OnFrame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user);
  static int OnFrameSent(nghttp2_session*, const nghttp2_frame_hd* frame, void* user);
  static int OnBody(nghttp2_session*, uint8_t flags, int32_t stream, const uint8_t* data, size_t length, void* user);
  static int OnClose(nghttp2_session*, int32_t stream, uint32_t error, void* user);
  static ptrdiff_t LengthToRead(nghttp2_session*, uint8_t type, int32_t stream, int32_t session_window, int32_t stream_window,
                                uint32_t most_frame, void* user);
  static ptrdiff_t ReadBody(nghttp2_session*, int32_t stream, uint8_t* into, size_t length, uint32_t* flags, nghttp2_data_source* source,
                            void* user);

  Stream* Find(int32_t id);
  void Drop(Stream* stream);

  TlsSession* tls_;
  Http2Limits limits_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, std::unique_ptr<Stream>> streams_;
  std::vector<Http2Event> events_;
};

}  // namespace millrace
