#include "batch.h"

#include <errno.h>
#include <poll.h>

#include "segments.h"

namespace millrace {
namespace {

constexpr size_t kArena = 1 << 20;
// A larger batch saves no measurable time, and would delay its first message.
constexpr size_t kMaxMessages = 16;
constexpr int kFullWaitMs = 5;
constexpr int kMaxTries = 4;

}  // namespace

Batch::Batch(SendMode mode, SendCounters* counters) : mode_(mode), counters_(counters), arena_(new uint8_t[kArena]), headers_(kMaxMessages), vectors_(kMaxMessages), controls_(kMaxMessages * kSegmentControl) {
  messages_.reserve(kMaxMessages);
}

uint8_t* Batch::Reserve(int socket, size_t length) {
  if (socket != socket_ || used_ + length > kArena || messages_.size() == kMaxMessages) Flush();
  socket_ = socket;
  return arena_.get() + used_;
}

void Batch::Commit(Viewer* viewer, size_t length) {
  if (!messages_.empty()) {
    Message& last = messages_.back();
    if (last.viewer == viewer && last.open && mode_ == SendMode::kSegmented && !viewer->whole_datagrams && length <= last.segment && last.count < kMaxSegments &&
        last.length + length <= kMaxSegmentedBytes) {
      last.length += length;
      last.count += 1;
      last.open = length == last.segment;
      used_ += length;
      return;
    }
  }
  messages_.push_back({viewer, used_, length, length, 1, true});
  used_ += length;
}

void Batch::Flush() {
  size_t at = 0;
  int tries = 0;
  const size_t count = messages_.size();
  for (size_t n = 0; n < count; n += 1) {
    const Message& message = messages_[n];
    vectors_[n] = {arena_.get() + message.offset, message.length};
    msghdr& header = headers_[n].msg_hdr;
    header = {};
    header.msg_name = &message.viewer->address.storage;
    header.msg_namelen = message.viewer->address.length;
    header.msg_iov = &vectors_[n];
    header.msg_iovlen = 1;
    if (message.count > 1) CutIntoSegments(&header, controls_.data() + n * kSegmentControl, message.segment);
  }
  while (at < count) {
    const size_t most = mode_ == SendMode::kSingle ? 1 : count - at;
    const int sent = sendmmsg(socket_, headers_.data() + at, static_cast<unsigned int>(most), MSG_DONTWAIT);
    counters_->calls.fetch_add(1, std::memory_order_relaxed);
    if (sent > 0) {
      for (int n = 0; n < sent; n += 1) counters_->datagrams.fetch_add(messages_[at + n].count, std::memory_order_relaxed);
      at += static_cast<size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      tries += 1;
      if (tries <= kMaxTries && WaitWritable()) continue;
      for (; at < count; at += 1) counters_->congested.fetch_add(messages_[at].count, std::memory_order_relaxed);
      break;
    }
    const Message& failed = messages_[at];
    if (failed.count > 1 && RefusesSegments(errno)) {
      if (CutsForNobody(errno)) mode_ = SendMode::kBatched;
      // Otherwise the failure concerns one address, and other viewers must not pay for it.
      if (SendSegments(failed)) failed.viewer->whole_datagrams = true;
    } else {
      counters_->errors.fetch_add(failed.count, std::memory_order_relaxed);
      failed.viewer->counters->send_errors.fetch_add(failed.count, std::memory_order_relaxed);
    }
    at += 1;
  }
  messages_.clear();
  used_ = 0;
}

bool Batch::SendSegments(const Message& message) {
  const Address& to = message.viewer->address;
  const size_t failed =
      SendApart(socket_, arena_.get() + message.offset, message.length, message.segment, &to.storage, to.length);
  counters_->calls.fetch_add(message.count, std::memory_order_relaxed);
  counters_->datagrams.fetch_add(message.count - failed, std::memory_order_relaxed);
  counters_->errors.fetch_add(failed, std::memory_order_relaxed);
  message.viewer->counters->send_errors.fetch_add(failed, std::memory_order_relaxed);
  return failed == 0;
}

bool Batch::WaitWritable() {
  pollfd descriptor = {socket_, POLLOUT, 0};
  return poll(&descriptor, 1, kFullWaitMs) > 0;
}

}  // namespace millrace
