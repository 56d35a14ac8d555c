#include "core/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <utility>
#include <mutex>
#include <thread>

#include "core/cpu_count.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define EXTENSOR_HAS_FORK 1
#endif
#if defined(__linux__)
#include <sched.h>
#define EXTENSOR_HAS_AFFINITY 1
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

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Woken by a caller, a worker is often put on the caller's own core, even when another is idle, and stays there: the two
// then take turns. So a worker leaves word where it runs, and a caller that finds it on its own core sends it away.
class Place {
 public:
  // By the worker, where it runs now.
  void update() {
#ifdef EXTENSOR_HAS_AFFINITY
    core_.store(sched_getcpu(), std::memory_order_relaxed);
#endif
  }

  // By the caller. The worker may then run on all cores it started with, but this one.
  void leave_to_caller(int here) {
#ifdef EXTENSOR_HAS_AFFINITY
    if (core_.load(std::memory_order_relaxed) != here || here < 0) return;
    cpu_set_t cores = cores_;
    CPU_CLR(here, &cores);
    if (CPU_COUNT(&cores) > 0 && pthread_setaffinity_np(thread_, sizeof cores, &cores) == 0)
      core_.store(-1, std::memory_order_relaxed);
#else
    (void)here;
#endif
  }

  static int of_caller() {
#ifdef EXTENSOR_HAS_AFFINITY
    return sched_getcpu();
#else
    return -1;
#endif
  }

  // By the caller that started the worker, which may run where its caller may.
  void set_thread(std::thread::native_handle_type thread) {
    thread_ = thread;
#ifdef EXTENSOR_HAS_AFFINITY
    if (sched_getaffinity(0, sizeof cores_, &cores_) != 0) CPU_ZERO(&cores_);
#endif
  }

 private:
  std::thread::native_handle_type thread_{};
#ifdef EXTENSOR_HAS_AFFINITY
  cpu_set_t cores_;
#endif
  std::atomic<int> core_{-1};
};

// A job is open while its chunks are handed out. `state_` holds, in one word, the number of the job,
// whether it is open, and how many workers are inside, so that a worker enters a job only while it is
// open and the caller leaves only when all workers have left: no worker ever sees a job that is gone.
class Pool {
 public:
  void run(int64_t items, Chunks chunks, detail::ChunkFunction function, void* context, int threads) {
    const int helpers = static_cast<int>(std::min<int64_t>(threads, chunks.count)) - 1;
    start_workers(helpers);
    const int here = Place::of_caller();
    for (int i = 0; i < workers_; ++i) where_[i].leave_to_caller(here);
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

  void start_workers(int count) {
    for (; workers_ < count; ++workers_) {
      Place& place = where_[workers_];
      std::thread worker([this, &place] { serve(place); });
      place.set_thread(worker.native_handle());
      worker.detach();
    }
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
    for (;;) {
      place.update();
      wait_for_news(last_job);
      uint64_t state = state_.load(std::memory_order_acquire);
      while ((state & open_bit) && !state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      }
      if (!(state & open_bit)) continue;
      last_job = state >> job_shift;
      const int place = places_.fetch_sub(1, std::memory_order_relaxed);
      if (place > 0) work(place);
      state_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void wait_for_news(uint64_t last_job) {
    const auto deadline = std::chrono::steady_clock::now() + spin_time;
    do {
      for (int i = 0; i < 32; ++i) {
        if (has_news(last_job)) return;
        pause_briefly();
      }
    } while (std::chrono::steady_clock::now() < deadline);
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

std::atomic<int> thread_count{0};
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

int initial_thread_count() {
  if (const char* text = std::getenv("EXTENSOR_NUM_THREADS")) {
    const int count = std::atoi(text);
    if (count > 0) return std::min(count, max_threads);
  }
  return std::min(usable_cpu_count(), max_threads);
}

void run_serially(int64_t items, Chunks chunks, detail::ChunkFunction function, void* context) {
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const int64_t begin = chunk * chunks.size;
    function(context, begin, std::min(items, begin + chunks.size));
  }
}

}  // namespace

int get_num_threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = initial_thread_count();
    thread_count.store(count, std::memory_order_relaxed);
  }
  return count;
}

void set_num_threads(int count) {
  thread_count.store(std::clamp(count, 1, max_threads), std::memory_order_relaxed);
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
  if (chunks.light && !shared.has_awake(std::min<int64_t>(threads, chunks.count) - 1)) run_serially(items, chunks, function, context);
  else shared.run(items, chunks, function, context, threads);
}

}  // namespace extensor
