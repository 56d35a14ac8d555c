#include "core/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "core/affinity.hpp"
#include "core/cpu_count.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#define EXTENSOR_HAS_FORK 1
#endif

namespace extensor {
namespace {

// Waking a sleeping thread costs the caller a few microseconds, so less work than this stays with it,
constexpr double shared_work_ns = 60e3;
// unless the thread is awake, as it is within a training step: then only less than this does.
constexpr double light_work_ns = 16e3;
// Long enough that handing out a chunk is free, short enough that a thread whose core was taken away
// holds up the others for little.
constexpr double chunk_ns = 20e3;
constexpr int max_threads = 256;
// How long a worker looks for more work before it sleeps. Longer than the gaps between the shared parts of a training
// step: a core that sleeps in a virtual machine wakes up too late for the next one.
constexpr auto spin_time = std::chrono::microseconds(200);
// A worker that was away from its core for so long between two looks was not alone on it: it costs a neighbour what it does
// not need. So it sleeps at once, now and for a while.
constexpr auto longest_look = std::chrono::microseconds(50);
constexpr auto considerate_time = std::chrono::milliseconds(50);
// A start of a worker that failed (a limit of processes or of memory) is not tried again for so long,
constexpr auto retry_time = std::chrono::seconds(1);
// and what the process is allowed to use is looked at this often at most.
constexpr auto look_time = std::chrono::milliseconds(1);

using Clock = std::chrono::steady_clock;

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void run_serially(int64_t items, Chunks chunks, detail::ChunkFunction function, void* context) {
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const int64_t begin = chunk * chunks.size;
    function(context, begin, std::min(items, begin + chunks.size));
  }
}

// The C++ runtime takes memory for the first exception of a thread, and glibc ends the process where there is none. So a worker
// takes it before it works, where it was seen to be there: what a thread frees is the first that it gets again.
bool can_throw() {
  for (size_t size : {4096, 128, 64, 32}) {
    void* volatile memory = std::malloc(size);
    if (memory == nullptr) return false;
    std::free(memory);
  }
  try {
    throw 0;
  } catch (int) {
  }
  return true;
}

// A thread inherits which signals it blocks. Those meant for the process belong to its own threads, one of which may wait in
// a call that a signal is to interrupt; what a thread does to itself stays its own.
class SignalsBlocked {
 public:
#ifdef EXTENSOR_HAS_FORK
  SignalsBlocked() {
    sigset_t most;
    sigfillset(&most);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) sigdelset(&most, signal);
    pthread_sigmask(SIG_SETMASK, &most, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
#else
  SignalsBlocked() {}
#endif
};

// A job is open while its chunks are handed out. `state_` holds, in one word, the number of the job,
// whether it is open, and how many workers are inside, so that a worker enters a job only while it is
// open and the caller leaves only when all workers have left: no worker ever sees a job that is gone.
class Pool {
 public:
  // For the one who made the pool busy, who shares the work of `threads` threads with as many helpers as there are.
  void run(int64_t items, Chunks chunks, detail::ChunkFunction function, void* context, int threads) {
    const int helpers = start_workers(static_cast<int>(std::min<int64_t>(threads, chunks.count)) - 1);
    if (helpers == 0) return run_serially(items, chunks, function, context);
    const int here = Place::of_caller();
    for (int i = 0; i < workers_; ++i) where_[i].leave_to_caller(here, cores_);
    function_ = function;
    context_ = context;
    items_ = items;
    chunks_ = chunks;
    sharers_ = helpers + 1;
    for (int i = 0; i < sharers_; ++i) {
      shares_[i].next.store(chunks.count * i / sharers_, std::memory_order_relaxed);
      shares_[i].end = chunks.count * (i + 1) / sharers_;
    }
    places_.store(helpers, std::memory_order_relaxed);
    const uint64_t job = (state_.load(std::memory_order_relaxed) >> job_shift) + 1;
    state_.store(job << job_shift | open_bit, std::memory_order_seq_cst);
    wake(helpers);
    work(0);
    state_.fetch_and(~open_bit, std::memory_order_acq_rel);
    for (int spins = 0; state_.load(std::memory_order_acquire) & inside_mask; ++spins) {
      if (spins < 4096) pause_briefly();
      else std::this_thread::yield();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));  // memory that was out, in whichever thread
  }

  // Follows the process to the cores it may use now. For the one who made the pool busy.
  void follow_process() {
    const Clock::time_point now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + look_time;
    Cores cores;
    if (!cores.read() || !(cores != cores_)) return;
    cores_ = cores;
    for (int i = 0; i < workers_; ++i) where_[i].move_to(cores_);
  }

  // Whether that many workers are looking for work. For the one who made the pool busy.
  bool has_awake(int64_t helpers) const { return workers_ - sleeping_.load(std::memory_order_relaxed) >= helpers; }

  std::atomic<bool> busy{false};

 private:
  static constexpr uint64_t inside_mask = 0xffff;
  static constexpr uint64_t open_bit = 0x10000;
  static constexpr int job_shift = 17;

  // First the chunks of one's own share, then what is left of the others'. A thread that sees the same part of an array
  // in one call after the other finds it in the caches near it.
  void work(int own) {
    for (int i = 0; i < sharers_; ++i) {
      Share& share = shares_[(own + i) % sharers_];
      for (;;) {
        const int64_t chunk = share.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= share.end) break;
        const int64_t begin = chunk * chunks_.size;
        try {
          function_(context_, begin, std::min(items_, begin + chunks_.size));
        } catch (...) {
          stop_with(std::current_exception());
          return;
        }
      }
    }
  }

  void stop_with(std::exception_ptr error) {
    for (int i = 0; i < sharers_; ++i) shares_[i].next.store(shares_[i].end, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(error_mutex_);
    error_ = std::move(error);
  }

  // Starts what is missing to `count` workers and says how many of those there are: fewer where the system refuses.
  int start_workers(int count) {
    if (workers_ >= count) return count;
    const Clock::time_point now = Clock::now();
    if (now < next_start_) return workers_;
    try {
      const SignalsBlocked blocked;
      for (; workers_ < count; ++workers_) {
        Place& place = where_[workers_];
        std::thread worker([this, &place] { serve(place); });
        place.set_thread(worker.native_handle());
        place.move_to(cores_);
        worker.detach();
      }
    } catch (const std::system_error&) {
      next_start_ = now + retry_time;
    } catch (const std::bad_alloc&) {
      next_start_ = now + retry_time;
    }
    return workers_;
  }

  void wake(int helpers) {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
    std::lock_guard<std::mutex> lock(sleep_mutex_);
    if (helpers == 1) sleep_condition_.notify_one();
    else sleep_condition_.notify_all();
  }

  bool has_news(uint64_t last_job) const {
    const uint64_t state = state_.load(std::memory_order_seq_cst);
    return (state & open_bit) && (state >> job_shift) != last_job;
  }

  [[noreturn]] void serve(Place& place) {
    uint64_t last_job = 0;
    Clock::time_point next_spin;
    bool ready = false;
    for (;;) {
      place.update();
      wait_for_news(last_job, next_spin);
      uint64_t state = state_.load(std::memory_order_acquire);
      while ((state & open_bit) && !state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      }
      if (!(state & open_bit)) continue;
      last_job = state >> job_shift;
      const int share = places_.fetch_sub(1, std::memory_order_relaxed);
      ready = ready || can_throw();
      if (share > 0 && ready) work(share);  // the others do its share where it cannot
      state_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  // By a worker, which may not spin before `next_spin`.
  void wait_for_news(uint64_t last_job, Clock::time_point& next_spin) {
    const Clock::time_point begin = Clock::now();
    for (Clock::time_point now = begin; now >= next_spin && now - begin < spin_time;) {
      for (int i = 0; i < 32; ++i) {
        if (has_news(last_job)) return;
        pause_briefly();
      }
      const Clock::time_point before = std::exchange(now, Clock::now());
      if (now - before > longest_look) next_spin = now + considerate_time;
    }
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    while (!has_news(last_job)) sleep_condition_.wait(lock);
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
  }

  detail::ChunkFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t items_ = 0;
  Chunks chunks_{0, 0};
  int workers_ = 0;
  Place where_[max_threads];
  Cores cores_;
  Clock::time_point next_start_, next_look_;
  alignas(64) std::atomic<uint64_t> state_{0};
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  Share shares_[max_threads];
  int sharers_ = 0;
  std::atomic<int> places_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  std::mutex sleep_mutex_, error_mutex_;
  std::exception_ptr error_;
  std::condition_variable sleep_condition_;
};

std::atomic<int> wanted_threads{0};  // 0: as many as the process may use
std::atomic<Pool*> the_pool{nullptr};

// The pool is never destroyed: its workers may outlive the end of main. A forked child has no workers,
// and the old pool may have been in the middle of a job, so it gets a new one.
Pool& pool() {
  static const bool created = [] {
    the_pool.store(new Pool);
#ifdef EXTENSOR_HAS_FORK
    pthread_atfork(nullptr, nullptr, [] { the_pool.store(new Pool); });
#endif
    return true;
  }();
  (void)created;
  return *the_pool.load(std::memory_order_acquire);
}

// What the user asked for, 0 for nothing.
int wanted_thread_count() {
  static const bool read = [] {
    const char* text = std::getenv("EXTENSOR_NUM_THREADS");
    const int count = text == nullptr ? 0 : std::atoi(text);
    int none = 0;
    if (count > 0) wanted_threads.compare_exchange_strong(none, std::min(count, max_threads));
    return true;
  }();
  (void)read;
  return wanted_threads.load(std::memory_order_relaxed);
}

// As many as the process may use cores, as it was at the last look.
int usable_thread_count() {
  static std::atomic<int> count{0};
  static std::atomic<Clock::rep> next_look{0};
  const Clock::time_point now = Clock::now();
  if (count.load(std::memory_order_relaxed) == 0 || now.time_since_epoch().count() >= next_look.load(std::memory_order_relaxed)) {
    count.store(std::min(usable_cpu_count(), max_threads), std::memory_order_relaxed);
    next_look.store((now + look_time).time_since_epoch().count(), std::memory_order_relaxed);
  }
  return count.load(std::memory_order_relaxed);
}

}  // namespace

int get_num_threads() {
  const int wanted = wanted_thread_count();
  return wanted > 0 ? wanted : usable_thread_count();
}

void set_num_threads(int count) {
  wanted_threads.store(std::clamp(count, 1, max_threads), std::memory_order_relaxed);
}

Chunks plan_chunks(int64_t items, double cost_ns) {
  const double work = static_cast<double>(items) * cost_ns;
  if (work < light_work_ns || items < 2) return {items, items > 0 ? 1 : 0};
  const bool light = work < shared_work_ns;
  const double wanted = std::min((light ? 2 : 1) * std::ceil(work / chunk_ns), static_cast<double>(items));
  const int64_t size = static_cast<int64_t>(std::ceil(static_cast<double>(items) / wanted));
  return {size, (items + size - 1) / size, light};
}

void detail::run_chunks(int64_t items, Chunks chunks, ChunkFunction function, void* context) {
  const int threads = chunks.count > 1 ? get_num_threads() : 1;
  if (threads == 1) return run_serially(items, chunks, function, context);
  Pool& shared = pool();
  if (shared.busy.exchange(true, std::memory_order_acquire)) return run_serially(items, chunks, function, context);
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } release{shared.busy};
  shared.follow_process();
  if (chunks.light && !shared.has_awake(std::min<int64_t>(threads, chunks.count) - 1)) run_serially(items, chunks, function, context);
  else shared.run(items, chunks, function, context, threads);
}

}  // namespace extensor
