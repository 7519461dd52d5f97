// One connection of Node.js whose requests are looked at first: what `AnswerCache` has is answered here, all else Node.js reads as if it had
// come from the socket. The stream stays that of Node.js, which closes it and sends what JavaScript answers.
#pragma once

#include <uv.h>

#include <memory>
#include <string>
#include <string_view>

#include "answer_cache.h"

namespace millrace {

class AnswerLink : public std::enable_shared_from_this<AnswerLink> {
 public:
  // Of the TCP stream with this descriptor in `loop`, which Node.js reads already; null when there is none.
  static std::shared_ptr<AnswerLink> Open(std::shared_ptr<AnswerCache> cache, uv_loop_t* loop, int descriptor);

  ~AnswerLink();
  AnswerLink(const AnswerLink&) = delete;
  AnswerLink& operator=(const AnswerLink&) = delete;

  // JavaScript has nothing to do for this connection: the next bytes begin a request.
  void Arm();
  // JavaScript answers whatever comes, for good.
  void Disarm();
  // The stream is read by Node.js alone from now on, or closed. Idempotent.
  void Close();
  // The request that JavaScript is answering; false when there was more than that.
  bool Asked(PlainRequest* request) const;
  AnswerCache& cache() { return *cache_; }

  // Others may wait here for the answer to `request`, which is that of `Asked`, until `EndLead` or `Close`; false: they may not.
  bool Lead(const PlainRequest& request, uint32_t variant, uint32_t feed);
  // The answer has been given, and kept if it is for others: it is given to those who wait. Without it they are released. Idempotent.
  void EndLead();
  size_t followers() const { return leads_ == nullptr ? 0 : leads_->followers.size(); }
  // A request that waits is for JavaScript, now.
  void Release();
  // How long the request that JavaScript is answering has waited here, ms.
  double held_for() const { return asked_.empty() ? 0 : held_for_; }
  // Answers those who follow, or releases them.
  static void Decide(AnswerWait* wait);
  // Hands requests that were released to JavaScript.
  static void ReleaseAll(AnswerCache* cache);
  // Hands all requests that follow one of `feed` to JavaScript.
  static void ReleaseFeed(AnswerCache* cache, uint32_t feed);

  uint32_t requests() const { return requests_; }
  // Since an answer was given here or left here, ms; below 0: never.
  double idle() const;

  // Ends connections whose clients have not taken an answer of here in `limit` ms, and releases who has waited too long.
  static void Sweep(double limit);

 private:
  // JavaScript: has the connection. Armed: waits for a request. Sending: an answer of here has not left yet, and nothing is read.
  // Waiting: the request in `asked_` follows another, or was released.
  enum class State { kJavaScript, kArmed, kSending, kWaiting, kClosed };
  struct Rest;

  AnswerLink(std::shared_ptr<AnswerCache> cache, uv_stream_t* stream, int descriptor);

  static void OnAlloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer);
  static void OnRead(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer);
  static void OnWritten(uv_write_t* request, int status);

  // True when `data` is answered.
  bool Answered(std::string_view data);
  // True when `data` is a request that another one decides about.
  bool Followed(std::string_view data);
  // As `Followed`, of a request that is known.
  bool Follow(std::string_view data);
  void Unfollow();
  // The client of a request that waits has gone.
  void Leave();
  // True when the request that has waited is answered now.
  bool Resumed();
  // Takes them from there.
  static std::vector<std::shared_ptr<AnswerLink>> FollowersOf(AnswerWait* wait);
  // Sends what the system has not taken; false when that cannot be done.
  bool SendRest(const Answer& answer, std::string_view head, const char* body, size_t sent);
  void GiveToNode(const char* data, ssize_t count);

  std::shared_ptr<AnswerCache> cache_;
  uv_stream_t* stream_;
  const int descriptor_;
  uv_alloc_cb node_alloc_;
  uv_read_cb node_read_;
  State state_ = State::kJavaScript;
  bool over_ = false;
  // The request that JavaScript answers, while it is all that has come.
  std::string asked_;
  std::shared_ptr<AnswerCache::Lines> lines_;
  std::shared_ptr<AnswerWait> leads_;
  // Of a request that waits, with its place there; null once it was released.
  std::shared_ptr<AnswerWait> follows_;
  size_t place_ = 0;
  uint64_t waits_since_ = 0;
  double held_for_ = 0;
  uint32_t requests_ = 0;
  uint64_t active_at_ = 0;
};

}  // namespace millrace
