// Sending and receiving on TCP sockets of Node.js, for `src/delivery/http/direct-sender.ts` and `src/native/tcp/socket-reader.ts`.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value ImageOpen(const Arguments& arguments);
napi_value ImageClose(const Arguments& arguments);
napi_value TcpSend(const Arguments& arguments);
napi_value TcpSendImage(const Arguments& arguments);
napi_value TcpReceive(const Arguments& arguments);

}  // namespace millrace
