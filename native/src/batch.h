// Datagrams collected for one socket and sent with few system calls.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "viewer.h"

namespace millrace {

enum class SendMode { kSegmented, kBatched, kSingle };

struct SendCounters {
  std::atomic<uint64_t> datagrams{0};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> errors{0};
  // Datagrams given up because the socket stayed full.
  std::atomic<uint64_t> congested{0};
};

class Batch {
 public:
  Batch(SendMode mode, SendCounters* counters);

  // Room for one datagram of up to `length` bytes; sends the batch first if the datagram does not fit.
  uint8_t* Reserve(int socket, size_t length);
  // The reserved bytes hold a datagram of `length` for `viewer`.
  void Commit(Viewer* viewer, size_t length);
  void Flush();

 private:
  // Datagrams for one viewer of equal length, except that the last may be shorter: one message with segmentation offload.
  struct Message {
    Viewer* viewer;
    size_t offset;
    size_t length;
    size_t segment;
    size_t count;
    bool open;
  };
  // Sends the datagrams of a message one by one; false when some could not be sent.
  bool SendSegments(const Message& message);
  bool WaitWritable();

  SendMode mode_;
  SendCounters* counters_;
  int socket_ = -1;
  // Not cleared, so that unused pages take no memory.
  std::unique_ptr<uint8_t[]> arena_;
  size_t used_ = 0;
  std::vector<Message> messages_;
  std::vector<mmsghdr> headers_;
  std::vector<iovec> vectors_;
  std::vector<uint8_t> controls_;
};

}  // namespace millrace
