// The used part of nghttp2, which Node.js contains without headers: HTTP/2 frames, header compression and flow control. Names and layouts
// are those of its documented interface. All symbols are weak: if Node.js was built without nghttp2, `Nghttp2IsThere` is false.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct nghttp2_session;
struct nghttp2_session_callbacks;
struct nghttp2_option;

struct nghttp2_nv {
  uint8_t* name;
  uint8_t* value;
  size_t namelen;
  size_t valuelen;
  uint8_t flags;
};

struct nghttp2_settings_entry {
  int32_t settings_id;
  uint32_t value;
};

// The first members of every frame.
struct nghttp2_frame_hd {
  size_t length;
  int32_t stream_id;
  uint8_t type;
  uint8_t flags;
  uint8_t reserved;
};

union nghttp2_data_source {
  int fd;
  void* ptr;
};

using nghttp2_data_source_read_callback2 = ptrdiff_t (*)(nghttp2_session*, int32_t stream, uint8_t* into, size_t length, uint32_t* flags,
                                                         nghttp2_data_source* source, void* user);
struct nghttp2_data_provider2 {
  nghttp2_data_source source;
  nghttp2_data_source_read_callback2 read_callback;
};

using nghttp2_on_begin_headers_callback = int (*)(nghttp2_session*, const nghttp2_frame_hd*, void* user);
using nghttp2_on_header_callback = int (*)(nghttp2_session*, const nghttp2_frame_hd*, const uint8_t* name, size_t name_length,
                                           const uint8_t* value, size_t value_length, uint8_t flags, void* user);
using nghttp2_on_frame_send_callback = int (*)(nghttp2_session*, const nghttp2_frame_hd*, void* user);
using nghttp2_on_frame_recv_callback = int (*)(nghttp2_session*, const nghttp2_frame_hd*, void* user);
using nghttp2_on_data_chunk_recv_callback = int (*)(nghttp2_session*, uint8_t flags, int32_t stream, const uint8_t* data, size_t length,
                                                    void* user);
using nghttp2_on_stream_close_callback = int (*)(nghttp2_session*, int32_t stream, uint32_t error, void* user);
using nghttp2_data_source_read_length_callback2 = ptrdiff_t (*)(nghttp2_session*, uint8_t type, int32_t stream, int32_t session_window,
                                                                int32_t stream_window, uint32_t most_frame, void* user);

#define MILLRACE_WEAK __attribute__((weak))
MILLRACE_WEAK int nghttp2_session_callbacks_new(nghttp2_session_callbacks**);
MILLRACE_WEAK void nghttp2_session_callbacks_del(nghttp2_session_callbacks*);
MILLRACE_WEAK void nghttp2_session_callbacks_set_on_begin_headers_callback(nghttp2_session_callbacks*, nghttp2_on_begin_headers_callback);
MILLRACE_WEAK void nghttp2_session_callbacks_set_on_header_callback(nghttp2_session_callbacks*, nghttp2_on_header_callback);
MILLRACE_WEAK void nghttp2_session_callbacks_set_on_frame_recv_callback(nghttp2_session_callbacks*, nghttp2_on_frame_recv_callback);
MILLRACE_WEAK void nghttp2_session_callbacks_set_on_frame_send_callback(nghttp2_session_callbacks*, nghttp2_on_frame_send_callback);
MILLRACE_WEAK void nghttp2_session_callbacks_set_on_data_chunk_recv_callback(nghttp2_session_callbacks*,
                                                                             nghttp2_on_data_chunk_recv_callback);
MILLRACE_WEAK void nghttp2_session_callbacks_set_on_stream_close_callback(nghttp2_session_callbacks*, nghttp2_on_stream_close_callback);
MILLRACE_WEAK void nghttp2_session_callbacks_set_data_source_read_length_callback2(nghttp2_session_callbacks*,
                                                                                   nghttp2_data_source_read_length_callback2);
MILLRACE_WEAK int nghttp2_option_new(nghttp2_option**);
MILLRACE_WEAK void nghttp2_option_del(nghttp2_option*);
MILLRACE_WEAK void nghttp2_option_set_no_auto_window_update(nghttp2_option*, int);
MILLRACE_WEAK void nghttp2_option_set_max_outbound_ack(nghttp2_option*, size_t);
MILLRACE_WEAK void nghttp2_option_set_no_closed_streams(nghttp2_option*, int);
MILLRACE_WEAK int nghttp2_session_server_new2(nghttp2_session**, const nghttp2_session_callbacks*, void* user, const nghttp2_option*);
MILLRACE_WEAK void nghttp2_session_del(nghttp2_session*);
MILLRACE_WEAK ptrdiff_t nghttp2_session_mem_recv2(nghttp2_session*, const uint8_t*, size_t);
MILLRACE_WEAK ptrdiff_t nghttp2_session_mem_send2(nghttp2_session*, const uint8_t**);
MILLRACE_WEAK int nghttp2_session_want_read(nghttp2_session*);
MILLRACE_WEAK int nghttp2_session_want_write(nghttp2_session*);
MILLRACE_WEAK int nghttp2_submit_settings(nghttp2_session*, uint8_t flags, const nghttp2_settings_entry*, size_t);
MILLRACE_WEAK int nghttp2_submit_response2(nghttp2_session*, int32_t stream, const nghttp2_nv*, size_t, const nghttp2_data_provider2*);
MILLRACE_WEAK int nghttp2_submit_rst_stream(nghttp2_session*, uint8_t flags, int32_t stream, uint32_t error);
MILLRACE_WEAK int nghttp2_submit_goaway(nghttp2_session*, uint8_t flags, int32_t last, uint32_t error, const uint8_t*, size_t);
MILLRACE_WEAK int32_t nghttp2_session_get_last_proc_stream_id(nghttp2_session*);
MILLRACE_WEAK int nghttp2_session_consume_connection(nghttp2_session*, size_t);
MILLRACE_WEAK int nghttp2_session_consume_stream(nghttp2_session*, int32_t stream, size_t);
#undef MILLRACE_WEAK
}

namespace millrace {

// Error codes and constants of RFC 9113, and of nghttp2 where the comment says so.
constexpr uint8_t kDataFrame = 0;
constexpr uint8_t kHeadersFrame = 1;
constexpr uint8_t kEndStream = 1;
constexpr uint32_t kNoError = 0;
constexpr uint32_t kEnhanceYourCalm = 11;
constexpr int32_t kMaxConcurrentStreams = 3;
constexpr int32_t kMaxHeaderListSize = 6;
// nghttp2: last bytes of a body; header values excluded from compression; an error that ends one stream, not the session.
constexpr uint32_t kEndOfData = 1;
constexpr uint8_t kNoIndex = 1;
constexpr int kStreamFault = -521;
constexpr int kSessionFault = -902;

inline bool Nghttp2IsThere() {
  // These functions are the newest of the used part.
  return nghttp2_session_mem_recv2 != nullptr && nghttp2_session_callbacks_set_data_source_read_length_callback2 != nullptr;
}

}  // namespace millrace
