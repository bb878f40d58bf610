// Compiled as C11: what another program would write.

#include "tests/profiler/c_api/c_program.h"

#include <pthread.h>
#include <string.h>

#include "profiler/c_api/sluice_record.h"

#define REQUIRE(condition)               \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

const char* record_all_kinds(const char* path) {
  sluice_recording* run = sluice_record_start(path, "all kinds", SLUICE_ALL);
  REQUIRE(run != NULL);
  const sluice_track disk = sluice_record_track(run, SLUICE_NO_TRACK, "disk");
  const sluice_track queue = sluice_record_track(run, disk, "queue 1");
  const sluice_track depth = sluice_record_counter_track(run, disk, "depth (requests)");
  const sluice_name read = sluice_record_name(run, "read");
  const sluice_name use = sluice_record_name(run, "use");
  REQUIRE(sluice_record_name(run, "read") == read);
  REQUIRE(sluice_record_track(run, disk, "queue 1") == queue);
  REQUIRE(sluice_record_level(run) == SLUICE_ALL);

  const sluice_span_ref before = sluice_instant(run, disk, sluice_record_name(run, "begin"));
  REQUIRE(before != SLUICE_NO_SPAN);
  sluice_step_begin(run, 0);
  const int64_t now = sluice_record_now();
  const sluice_span_ref cause = sluice_span_at(run, queue, read, now, now + 10, now + 30, 4096);
  sluice_counter(run, depth, 2.5);
  const sluice_span span = sluice_span_begin(run, disk, use);
  const sluice_span_ref effect = sluice_span_end(run, span, 0);
  REQUIRE(cause != SLUICE_NO_SPAN && effect != SLUICE_NO_SPAN);
  sluice_flow(run, cause, effect);
  sluice_flow(run, SLUICE_NO_SPAN, effect); /* nothing */
  sluice_step_end_trained(run, 64, 3.5);
  sluice_step_begin(run, 1);
  sluice_step_end(run);
  REQUIRE(sluice_record_flush(run) == 0);
  REQUIRE(sluice_record_lost_count(run) == 0);
  REQUIRE(sluice_record_stop(run) == 0);
  REQUIRE(sluice_record_stop(NULL) == 0);
  return NULL;
}

/* A step of 100 us by its own clock: 20 of reading, 60 of forward on compute, 20 of writing. */
const char* record_links_and_stages(const char* path) {
  REQUIRE(sluice_record_version() == SLUICE_RECORD_VERSION);
  sluice_recording* run = sluice_record_start(path, "links", SLUICE_ALL);
  REQUIRE(run != NULL);
  const sluice_device drive = sluice_record_device(run, "nvme0", 1e9, 5e8);
  REQUIRE(drive != SLUICE_NO_DEVICE);
  REQUIRE(sluice_record_device(run, "nvme0", 0, 0) == drive);
  REQUIRE(sluice_record_device(run, "nvme1", 0, 0) != drive);
  const sluice_link bus = sluice_record_link(run, "pcie", 0, 0);
  REQUIRE(bus != SLUICE_NO_LINK);
  const sluice_track threads = sluice_record_track(run, SLUICE_NO_TRACK, "threads");
  const sluice_track in =
      sluice_record_transfer_track(run, threads, "in", drive, bus, SLUICE_OUT_OF_DRIVE);
  const sluice_track out =
      sluice_record_transfer_track(run, threads, "out", drive, SLUICE_NO_LINK, SLUICE_INTO_DRIVE);
  REQUIRE(in != SLUICE_NO_TRACK && out != SLUICE_NO_TRACK && in != out);
  const sluice_stage transfer = {SLUICE_TRANSFER, SLUICE_ON_DEVICE, SLUICE_NO_PHASE,
                                 SLUICE_BY_PLACE};
  const sluice_stage forward = {SLUICE_KERNEL, SLUICE_ON_COMPUTE, SLUICE_FORWARD, SLUICE_BY_PLACE};
  const sluice_name load = sluice_record_stage(run, "load", transfer);
  const sluice_name think = sluice_record_stage(run, "think", forward);
  const sluice_name keep = sluice_record_stage(run, "keep", transfer);
  REQUIRE(load != SLUICE_NO_NAME && think != SLUICE_NO_NAME);
  REQUIRE(sluice_record_stage(run, "think", transfer) == think);

  const sluice_stage unknown = {SLUICE_TRANSFER, 6, 0, 0};
  REQUIRE(sluice_record_stage(run, "unknown", unknown) == SLUICE_NO_NAME);
  REQUIRE(strstr(sluice_record_error(), "place 6") != NULL);
  REQUIRE(sluice_record_transfer_track(run, threads, "x", 9, bus, SLUICE_OUT_OF_DRIVE) ==
          SLUICE_NO_TRACK);
  REQUIRE(strstr(sluice_record_error(), "no device 9") != NULL);
  REQUIRE(sluice_record_transfer_track(run, threads, "x", drive, 9, SLUICE_OUT_OF_DRIVE) ==
          SLUICE_NO_TRACK);
  REQUIRE(sluice_record_transfer_track(run, threads, "x", drive, bus, 2) == SLUICE_NO_TRACK);

  sluice_step_begin(run, 0);
  const int64_t now = sluice_record_now();
  sluice_span_at(run, in, load, now, now, now + 20000, 10000);
  sluice_span_at(run, threads, think, now + 20000, now + 20000, now + 80000, 0);
  sluice_span_at(run, out, keep, now + 80000, now + 80000, now + 100000, 5000);
  while (sluice_record_now() < now + 100000) {
  }
  sluice_step_end(run);
  REQUIRE(sluice_record_stop(run) == 0);
  return NULL;
}

struct worker {
  sluice_recording* run;
  sluice_track track;
  sluice_name name;
  int span_count;
};

static void* work(void* argument) {
  const struct worker* worker = argument;
  for (int i = 0; i < worker->span_count; ++i) {
    sluice_span_end(worker->run, sluice_span_begin(worker->run, worker->track, worker->name), i);
  }
  return NULL;
}

/* Two rounds of threads, one after the other: those of the second take over the rings. */
const char* record_from_threads(const char* path, int thread_count, int span_count) {
  sluice_recording* run = sluice_record_start(path, "threads", SLUICE_ALL);
  REQUIRE(run != NULL);
  struct worker worker = {run, sluice_record_track(run, SLUICE_NO_TRACK, "work"),
                          sluice_record_name(run, "span"), span_count};
  for (int round = 0; round < 2; ++round) {
    pthread_t threads[16];
    REQUIRE(thread_count <= 16);
    for (int t = 0; t < thread_count; ++t) {
      REQUIRE(pthread_create(&threads[t], NULL, work, &worker) == 0);
    }
    for (int t = 0; t < thread_count; ++t) REQUIRE(pthread_join(threads[t], NULL) == 0);
    REQUIRE(sluice_record_flush(run) == 0);
  }
  REQUIRE(sluice_record_lost_count(run) == 0);
  REQUIRE(sluice_record_stop(run) == 0);
  return NULL;
}

/* In each stretch one of each kind, named after its level. */
const char* record_at_each_level(const char* path) {
  static const char* const kNames[] = {"off", "steps", "transfers", "all"};
  sluice_recording* run = sluice_record_start(path, "levels", SLUICE_ALL);
  REQUIRE(run != NULL);
  const sluice_track track = sluice_record_track(run, SLUICE_NO_TRACK, "work");
  int step = 0;
  for (int round = 0; round < 2; ++round) {
    for (int level = SLUICE_ALL; level >= SLUICE_OFF; --level, ++step) {
      sluice_record_set_level(run, (sluice_level)level, "user");
      REQUIRE(sluice_record_level(run) == (sluice_level)level);
      const sluice_name name = sluice_record_name(run, kNames[level]);
      const sluice_track counter = sluice_record_counter_track(run, track, kNames[level]);
      sluice_step_begin(run, step);
      const sluice_span_ref from = sluice_instant(run, track, name);
      const sluice_span_ref to = sluice_span_end(run, sluice_span_begin(run, track, name), 1);
      REQUIRE((to != SLUICE_NO_SPAN) == (level >= SLUICE_TRANSFERS));
      sluice_flow(run, from, to);
      sluice_counter(run, counter, step);
      sluice_step_end(run);
    }
  }
  REQUIRE(sluice_record_stop(run) == 0);
  return NULL;
}

/* Mistakes of the program that records are counted and harm nobody. */
const char* record_what_is_unknown(const char* path) {
  sluice_recording* run = sluice_record_start(path, NULL, SLUICE_ALL);
  REQUIRE(run != NULL);
  const sluice_track track = sluice_record_track(run, 12345, "its parent is unknown");
  const sluice_name name = sluice_record_name(run, "known");
  REQUIRE(sluice_instant(run, SLUICE_NO_TRACK, name) == SLUICE_NO_SPAN);
  REQUIRE(sluice_instant(run, track + 1000, name) == SLUICE_NO_SPAN);
  REQUIRE(sluice_instant(run, track, name + 1000) == SLUICE_NO_SPAN);
  sluice_counter(run, track + 1000, 1);
  REQUIRE(sluice_record_lost_count(run) == 4);
  const sluice_span_ref span = sluice_instant(run, track, name);
  sluice_flow(run, span + 77, span);
  sluice_flow(run, ((sluice_span_ref)999 << 48), span);
  sluice_step_end(run); /* none was begun */
  sluice_record_set_level(run, (sluice_level)17, "nobody");
  REQUIRE(sluice_record_level(run) == SLUICE_ALL);
  REQUIRE(sluice_record_stop(run) == 0);
  return NULL;
}

const char* start_where_it_cannot(const char* path) {
  REQUIRE(sluice_record_start(path, "nothing", SLUICE_ALL) == NULL);
  REQUIRE(strstr(sluice_record_error(), path) != NULL);
  REQUIRE(sluice_record_start(NULL, "nothing", SLUICE_ALL) == NULL);
  REQUIRE(sluice_record_start(path, "nothing", (sluice_level)9) == NULL);
  REQUIRE(strstr(sluice_record_error(), "level 9") != NULL);
  return NULL;
}
