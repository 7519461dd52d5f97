// Reads a connection of Node.js first: a request whose answer is in `AnswerCache` is answered here, and everything else goes to Node.js as
// if it came from the socket. The stream still belongs to Node.js, which closes it and sends the answers of JavaScript.
#pragma once

#include <uv.h>

#include <memory>
#include <string>
#include <string_view>

#include "answer_cache.h"

namespace millrace {

class AnswerLink : public std::enable_shared_from_this<AnswerLink> {
 public:
  // Links the TCP stream with this descriptor in `loop`, which Node.js must be reading; null when there is none.
  static std::shared_ptr<AnswerLink> Open(std::shared_ptr<AnswerCache> cache, uv_loop_t* loop, int descriptor);

  ~AnswerLink();
  AnswerLink(const AnswerLink&) = delete;
  AnswerLink& operator=(const AnswerLink&) = delete;

  // JavaScript has answered all requests of this connection: the next bytes begin a request.
  void Arm();
  // From now on JavaScript gets all requests.
  void Disarm();
  // From now on Node.js reads the stream alone, or has closed it. Idempotent.
  void Close();
  // The request that JavaScript is answering; false when more bytes than that request have come.
  bool Asked(PlainRequest* request) const;
  AnswerCache& cache() { return *cache_; }

  // Lets other requests wait for the answer to `request`, the request of `Asked`, until `EndLead` or `Close`; false: they cannot.
  bool Lead(const PlainRequest& request, uint32_t variant, uint32_t feed);
  // JavaScript has answered. If the answer was kept, the waiting requests get it; otherwise they are released. Idempotent.
  void EndLead();
  size_t followers() const { return leads_ == nullptr ? 0 : leads_->followers.size(); }
  // Passes a waiting request to JavaScript now.
  void Release();
  // How long the request that JavaScript is answering had waited here, ms.
  double held_for() const { return asked_.empty() ? 0 : held_for_; }
  // Answers the requests of a wait from the cache, or releases them.
  static void Decide(AnswerWait* wait);
  // Passes all released requests to JavaScript.
  static void ReleaseAll(AnswerCache* cache);
  // Passes all requests that wait for answers of `feed` to JavaScript.
  static void ReleaseFeed(AnswerCache* cache, uint32_t feed);

  uint32_t requests() const { return requests_; }
  // Time since the last activity here, ms; 0 while an answer is being sent or a request waits; negative: there was none.
  double idle() const;

  // Ends connections whose clients have not read an answer within `limit` ms, and releases requests that have waited too long.
  static void Sweep(double limit);

 private:
  // JavaScript: has the connection. Armed: waits for a request. Sending: an answer is being sent, and nothing is read.
  // Waiting: the request in `asked_` waits for another's answer, or was released.
  enum class State { kJavaScript, kArmed, kSending, kWaiting, kClosed };
  struct Rest;

  AnswerLink(std::shared_ptr<AnswerCache> cache, uv_stream_t* stream, int descriptor);

  static void OnAlloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer);
  static void OnRead(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer);
  static void OnWritten(uv_write_t* request, int status);

  // Answers `data` if the cache can; true when it did.
  bool Answered(std::string_view data);
  // Lets the request in `data` wait for another's answer; true when it waits.
  bool Followed(std::string_view data);
  // As `Followed`, for the request in `asked_`.
  bool Follow(std::string_view data);
  void Unfollow();
  // The client of a waiting request has gone.
  void Leave();
  // Ends a wait with the answer in the cache; false when the request still has no answer.
  bool Resumed();
  // Empties a wait and returns the links that were in it.
  static std::vector<std::shared_ptr<AnswerLink>> FollowersOf(AnswerWait* wait);
  // Queues the unsent rest of an answer; false when that fails.
  bool SendRest(const Answer& answer, std::string_view head, const char* body, size_t sent);
  void GiveToNode(const char* data, ssize_t count);

  std::shared_ptr<AnswerCache> cache_;
  uv_stream_t* stream_;
  const int descriptor_;
  uv_alloc_cb node_alloc_;
  uv_read_cb node_read_;
  State state_ = State::kJavaScript;
  bool over_ = false;
  // The request that JavaScript is answering; empty when more bytes than that have come.
  std::string asked_;
  std::shared_ptr<AnswerCache::Lines> lines_;
  std::shared_ptr<AnswerWait> leads_;
  // The wait that the request in `asked_` has joined, and its index there; null once released.
  std::shared_ptr<AnswerWait> follows_;
  size_t place_ = 0;
  uint64_t waits_since_ = 0;
  double held_for_ = 0;
  uint32_t requests_ = 0;
  uint64_t active_at_ = 0;
};

}  // namespace millrace
