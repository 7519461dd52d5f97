// Answers to requests for files of streams that JavaScript has given before and that are the same for everybody who asks in the same way,
// until JavaScript says otherwise. Requests are compared, not understood: the lines of headers have to be, byte for byte, lines that
// JavaScript has judged. Of one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "image.h"

namespace millrace {

// The parts of a request for a file, in place.
struct PlainRequest {
  std::string_view target;
  std::string_view path;
  // Of the session.
  std::string_view token;
  // The query behind the session.
  std::string_view rest;
  // The lines of headers, with the empty one.
  std::string_view lines;
};

// Takes a request apart that lies alone and whole in `data` and is `GET /…?session=…` without anything that has to be decoded; false: it is
// not. The lines of headers are not looked at, but that nothing follows them.
bool ReadPlainRequest(std::string_view data, PlainRequest* request);

// The answer to a request, but for what stands in front of `head`.
struct Answer {
  std::string key;
  uint32_t feed = 0;
  // The lines of headers behind `Date`, with the empty one.
  std::string head;
  // What the answer counts for.
  uint64_t billed = 0;
  // The body is either of these.
  std::string body;
  SharedImage image;
  // Where `?session=TOKEN` stands in the body, of which length; nowhere for one that is the same for all sessions.
  std::vector<uint32_t> places;
  size_t tail_length = 0;
  // Of a body in gzip form: its checksum with tails of zeros, that of such a tail, and what the checksum of a tail is multiplied with.
  bool summed = false;
  uint32_t zero_sum = 0;
  uint32_t zero_tail_sum = 0;
  uint32_t shifts = 0;

  size_t length() const { return image != nullptr ? image->length() : body.size(); }
  // Writes the body for the session of `token` to `into`, which has room for it.
  void Write(std::string_view token, char* into) const;
};

class AnswerLink;

// A request that JavaScript will answer later, and others for the same that wait for its answer.
struct AnswerWait {
  std::string key;
  uint32_t feed = 0;
  // In no order; each knows its place.
  std::vector<AnswerLink*> followers;
};

class AnswerCache {
 public:
  // Requests with these lines of headers are answered alike where they ask for the same: all that belong to one variant.
  struct Lines {
    std::string text;
    uint32_t variant = 0;
    // Of the cache when the variant was told.
    uint64_t generation = 0;
  };
  struct Session {
    std::string token;
    uint32_t feed = 0;
    // Wall clock, ms.
    double expires_at = 0;
    uint64_t bytes = 0;
    bool touched = false;
  };
  struct Figures {
    uint64_t requests = 0;
    uint64_t bytes = 0;
    uint64_t aborts = 0;
    uint64_t timeouts = 0;
    // Answers that were not kept because there was no room.
    uint64_t refused = 0;
    // Requests that began to follow another, those that would have and found no room, and those whose clients left meanwhile.
    uint64_t held = 0;
    uint64_t crowded = 0;
    uint64_t left = 0;
  };

  // Longer requests are for JavaScript.
  static constexpr size_t kMostRequest = 4096;

  // At most `most_followers` requests follow others at once.
  explicit AnswerCache(size_t most_followers) : most_followers_(most_followers) {}
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;

  // The lines that JavaScript has judged since `FlushAll`; null: it has not. `known` is tried first.
  const std::shared_ptr<Lines>* Known(std::string_view lines, const std::shared_ptr<Lines>& known);
  // The answer and the session for a request of this variant; null: it is for JavaScript.
  const Answer* Find(const PlainRequest& request, uint32_t variant, Session** session);
  // Counts an answer of which `sent` bytes are on their way.
  void Count(const Answer& answer, Session* session, size_t sent);

  // JavaScript has judged these lines.
  void Judge(std::string_view lines, uint32_t variant);
  // Keeps the answer for `request`; false: there is no room.
  bool Keep(const PlainRequest& request, uint32_t variant, std::unique_ptr<Answer> answer);
  // Forgets all answers of a feed.
  void Flush(uint32_t feed);
  // Forgets all answers, what was judged, and all sessions. Nobody follows anybody any more.
  void FlushAll();

  // JavaScript answers `request` later; null when another one is waited for already, or there is no room.
  std::shared_ptr<AnswerWait> BeginWait(const PlainRequest& request, uint32_t variant, uint32_t feed);
  // Nobody begins to follow it any more.
  void EndWait(const AnswerWait& wait);
  // What is waited for of a feed.
  std::vector<std::shared_ptr<AnswerWait>> WaitsOf(uint32_t feed) const;
  // What a request of this variant may follow; null: nothing, or there is no room. The session counts as active then.
  std::shared_ptr<AnswerWait> Follow(const PlainRequest& request, uint32_t variant);
  // It does not any more.
  void Unfollow() { followers_ -= 1; }
  size_t followers() const { return followers_; }
  // Links whose requests are for JavaScript after all, as soon as it has time.
  std::vector<std::weak_ptr<AnswerLink>>& released() { return released_; }

  // A session that may watch what `feed` has → its number. The same one when the token is known.
  uint32_t OpenSession(std::string_view token, uint32_t feed, double expires_at);
  void CloseSession(uint32_t session);

  Figures& figures() { return figures_; }
  // Bytes since the last call: feed, bytes, …
  std::vector<double> TakeFeeds();
  // Of sessions that had something: session, bytes, …
  std::vector<double> TakeSessions();

 private:
  std::string_view KeyOf(const PlainRequest& request, uint32_t variant);
  // The session of `token` while it may watch `feed`, else null.
  Session* SessionOf(std::string_view token, uint32_t feed);
  void Touch(Session* session);

  struct Feed {
    uint64_t bytes = 0;
    bool asked = false;
    std::vector<Answer*> answers;
  };

  uint64_t generation_ = 1;
  std::unordered_map<std::string_view, std::shared_ptr<Lines>> lines_;
  std::unordered_map<std::string_view, std::unique_ptr<Answer>> answers_;
  size_t bytes_ = 0;
  std::unordered_map<uint32_t, Feed> feeds_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<uint32_t> free_;
  std::unordered_map<std::string_view, uint32_t> tokens_;
  std::vector<uint32_t> touched_;
  const size_t most_followers_;
  size_t followers_ = 0;
  std::unordered_map<std::string_view, std::shared_ptr<AnswerWait>> waits_;
  std::vector<std::weak_ptr<AnswerLink>> released_;
  Figures figures_;
  std::string key_;
};

}  // namespace millrace
