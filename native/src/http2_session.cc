#include "http2_session.h"

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

// A frame of this size with its head fills one TLS record, which is contiguous in memory.
constexpr uint32_t kFrame = 16 * 1024 - 9;
// Limit of queued acknowledgements of pings and settings; nghttp2 ends a session with more.
constexpr size_t kMaxAcks = 100;
// Bytes that each header counts beyond its text (RFC 9113 section 6.5.2).
constexpr size_t kHeaderOverhead = 32;
constexpr char kStatusName[] = ":status";

nghttp2_nv Header(const char* name, size_t name_length, const char* value, size_t value_length) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name)), reinterpret_cast<uint8_t*>(const_cast<char*>(value)), name_length,
          value_length, 0};
}

// Splits complete header lines; names are put into lower case in place.
std::vector<nghttp2_nv> HeadersOf(std::string* block) {
  std::vector<nghttp2_nv> headers;
  size_t at = 0;
  while (at < block->size()) {
    size_t end = block->find("\r\n", at);
    if (end == std::string::npos) end = block->size();
    const size_t colon = block->find(": ", at);
    if (colon != std::string::npos && colon > at && colon + 2 <= end) {
      for (size_t n = at; n < colon; n += 1) {
        char& letter = (*block)[n];
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
      }
      headers.push_back(Header(block->data() + at, colon - at, block->data() + colon + 2, end - colon - 2));
    }
    at = end + 2;
  }
  return headers;
}

}  // namespace

Http2Session::Http2Session(TlsSession* tls, const Http2Limits& limits) : tls_(tls), limits_(limits) {
  // One for all sessions.
  static const nghttp2_session_callbacks* const callbacks = [] {
    nghttp2_session_callbacks* made = nullptr;
    if (nghttp2_session_callbacks_new(&made) != 0) return made;
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, OnFrameSent);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnBody);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, OnClose);
    nghttp2_session_callbacks_set_data_source_read_length_callback2(made, LengthToRead);
    return made;
  }();
  nghttp2_option* option = nullptr;
  if (callbacks == nullptr || nghttp2_option_new(&option) != 0) return;
  // Flow control is ours: a client's window grows only when its data has been read.
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_max_outbound_ack(option, kMaxAcks);
  // Priorities of closed streams are not used.
  nghttp2_option_set_no_closed_streams(option, 1);
  if (nghttp2_session_server_new2(&session_, callbacks, this, option) != 0) session_ = nullptr;
  nghttp2_option_del(option);
  if (session_ == nullptr) return;
  const nghttp2_settings_entry settings[] = {{kMaxConcurrentStreams, limits.streams},
                                             {kMaxHeaderListSize, static_cast<uint32_t>(limits.header_bytes)}};
  nghttp2_submit_settings(session_, 0, settings, 2);
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

Http2Session::Stream* Http2Session::Find(int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

bool Http2Session::Receive(const uint8_t* data, size_t length) {
  return nghttp2_session_mem_recv2(session_, data, length) == static_cast<ptrdiff_t>(length);
}

bool Http2Session::Respond(napi_env env, int32_t id, const std::string& status, const std::string& block, napi_value body) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->answered) return false;
  uint32_t count = 0;
  std::vector<Bytes> pieces;
  if (body != nullptr) {
    if (napi_get_array_length(env, body, &count) != napi_ok) throw BadArgument{"an array is expected"};
    for (uint32_t n = 0; n < count; n += 1) {
      napi_value element = nullptr;
      napi_get_element(env, body, n, &element);
      const Bytes bytes = BytesOf(env, element);
      if (bytes.length > 0) pieces.push_back(bytes);
    }
  }
  std::string lines = block;
  std::vector<nghttp2_nv> headers = HeadersOf(&lines);
  headers.insert(headers.begin(), Header(kStatusName, sizeof kStatusName - 1, status.data(), status.size()));
  stream->answered = true;
  stream->body = std::move(pieces);
  if (!stream->body.empty()) {
    stream->env = env;
    napi_create_reference(env, body, 1, &stream->held);
  } else stream->sent = true;
  nghttp2_data_provider2 provider = {{0}, ReadBody};
  return nghttp2_submit_response2(session_, id, headers.data(), headers.size(), stream->body.empty() ? nullptr : &provider) == 0;
}

void Http2Session::Reset(int32_t stream, uint32_t error) { nghttp2_submit_rst_stream(session_, 0, stream, error); }

void Http2Session::Consume(int32_t stream, size_t length) { nghttp2_session_consume_stream(session_, stream, length); }

void Http2Session::GoAway() {
  nghttp2_submit_goaway(session_, 0, nghttp2_session_get_last_proc_stream_id(session_), kNoError, nullptr, 0);
}

void Http2Session::Flush() {
  while (!tls_->blocked()) {
    const uint8_t* data = nullptr;
    const ptrdiff_t length = nghttp2_session_mem_send2(session_, &data);
    if (length <= 0) break;
    tls_->Write(data, static_cast<size_t>(length));
  }
  tls_->Flush();
}

bool Http2Session::over() const { return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0; }

void Http2Session::Release(napi_env) {
  for (auto& [id, stream] : streams_) Drop(stream.get());
  streams_.clear();
}

void Http2Session::Drop(Stream* stream) {
  if (stream->held != nullptr) napi_delete_reference(stream->env, stream->held);
  stream->held = nullptr;
  stream->body.clear();
}

int Http2Session::OnBeginHeaders(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
  auto* self = static_cast<Http2Session*>(user);
  auto& stream = self->streams_[frame->stream_id];
  if (stream == nullptr) stream = std::make_unique<Stream>();
  return 0;
}

int Http2Session::OnHeader(nghttp2_session* session, const nghttp2_frame_hd* frame, const uint8_t* name, size_t name_length,
                           const uint8_t* value, size_t value_length, uint8_t, void* user) {
  auto* self = static_cast<Http2Session*>(user);
  Stream* stream = self->Find(frame->stream_id);
  // Trailers are ignored.
  if (stream == nullptr || stream->told) return 0;
  stream->lines += 1;
  if (stream->lines > self->limits_.header_lines ||
      stream->head.size() + stream->lines * kHeaderOverhead + name_length + value_length > self->limits_.header_bytes) {
    nghttp2_submit_rst_stream(session, 0, frame->stream_id, kEnhanceYourCalm);
    return kStreamFault;
  }
  stream->head += '\n';
  stream->head.append(reinterpret_cast<const char*>(name), name_length);
  stream->head += ": ";
  stream->head.append(reinterpret_cast<const char*>(value), value_length);
  return 0;
}

int Http2Session::OnFrame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
  auto* self = static_cast<Http2Session*>(user);
  if (frame->type != kHeadersFrame && frame->type != kDataFrame) return 0;
  Stream* stream = self->Find(frame->stream_id);
  if (stream == nullptr) return 0;
  const bool last = (frame->flags & kEndStream) != 0;
  stream->whole = stream->whole || last;
  if (frame->type == kHeadersFrame && !stream->told) {
    stream->told = true;
    stream->head += '\n';
    self->events_.push_back({Http2EventType::kRequest, frame->stream_id, last ? 1u : 0u, std::move(stream->head)});
    stream->head.clear();
  } else if (last) self->events_.push_back({Http2EventType::kBodyEnd, frame->stream_id, 0, {}});
  return 0;
}

// A response may be complete before its request; then the rest of the request is not read.
int Http2Session::OnFrameSent(nghttp2_session* session, const nghttp2_frame_hd* frame, void* user) {
  if ((frame->type != kHeadersFrame && frame->type != kDataFrame) || (frame->flags & kEndStream) == 0) return 0;
  const Stream* stream = static_cast<Http2Session*>(user)->Find(frame->stream_id);
  if (stream != nullptr && !stream->whole) nghttp2_submit_rst_stream(session, 0, frame->stream_id, kNoError);
  return 0;
}

int Http2Session::OnBody(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t length, void* user) {
  auto* self = static_cast<Http2Session*>(user);
  nghttp2_session_consume_connection(session, length);
  self->events_.push_back({Http2EventType::kBody, id, 0, std::string(reinterpret_cast<const char*>(data), length)});
  return 0;
}

int Http2Session::OnClose(nghttp2_session*, int32_t id, uint32_t error, void* user) {
  auto* self = static_cast<Http2Session*>(user);
  const auto found = self->streams_.find(id);
  if (found == self->streams_.end()) return 0;
  Stream* stream = found->second.get();
  if (stream->told) self->events_.push_back({Http2EventType::kClosed, id, error == kNoError && stream->sent ? 1u : 0u, {}});
  self->Drop(stream);
  self->streams_.erase(found);
  return 0;
}

ptrdiff_t Http2Session::LengthToRead(nghttp2_session*, uint8_t, int32_t, int32_t session_window, int32_t stream_window, uint32_t most_frame,
                                     void*) {
  const int32_t window = std::min(session_window, stream_window);
  return std::max<ptrdiff_t>(1, std::min<ptrdiff_t>(window, std::min(most_frame, kFrame)));
}

ptrdiff_t Http2Session::ReadBody(nghttp2_session*, int32_t id, uint8_t* into, size_t length, uint32_t* flags, nghttp2_data_source*,
                                 void* user) {
  auto* self = static_cast<Http2Session*>(user);
  Stream* stream = self->Find(id);
  if (stream == nullptr) return kSessionFault;
  size_t read = 0;
  while (read < length && stream->at < stream->body.size()) {
    const Bytes& piece = stream->body[stream->at];
    const size_t taken = std::min(length - read, piece.length - stream->offset);
    memcpy(into + read, piece.data + stream->offset, taken);
    read += taken;
    stream->offset += taken;
    if (stream->offset == piece.length) {
      stream->at += 1;
      stream->offset = 0;
    }
  }
  if (stream->at == stream->body.size()) {
    stream->sent = true;
    *flags |= kEndOfData;
  }
  return static_cast<ptrdiff_t>(read);
}

}  // namespace millrace
