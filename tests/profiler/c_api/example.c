#include <stdio.h>

#include "profiler/c_api/sluice_record.h"

int main(int argc, char** argv) {
  sluice_recording* run = sluice_record_start(argc > 1 ? argv[1] : "run.db", "copy", SLUICE_ALL);
  if (run == NULL) return fprintf(stderr, "%s\n", sluice_record_error()), 1;
  const sluice_track disk = sluice_record_track(run, SLUICE_NO_TRACK, "disk");
  const sluice_name read = sluice_record_name(run, "read");
  for (int step = 0; step < 10; ++step) {
    sluice_step_begin(run, step);
    const sluice_span span = sluice_span_begin(run, disk, read);
    /* what takes the time: here 4096 bytes would be read */
    sluice_span_end(run, span, 4096);
    sluice_step_end(run);
  }
  if (sluice_record_stop(run) != 0) return fprintf(stderr, "%s\n", sluice_record_error()), 1;
  return 0;
}
