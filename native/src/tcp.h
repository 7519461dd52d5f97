// Sending and receiving on TCP sockets of Node.js, for `src/delivery/http/direct-sender.ts` and `src/native/tcp/socket-reader.ts`.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value MemoryFileOpen(const Arguments& arguments);
napi_value MemoryFileClose(const Arguments& arguments);
napi_value TcpSend(const Arguments& arguments);
napi_value TcpSendMemoryFile(const Arguments& arguments);
napi_value TcpReceive(const Arguments& arguments);

}  // namespace millrace
