#pragma once
// What the test has done in C: each function returns NULL, or what went wrong.

#ifdef __cplusplus
extern "C" {
#endif

const char* record_all_kinds(const char* path);
const char* record_from_threads(const char* path, int thread_count, int span_count);
const char* record_at_each_level(const char* path);
const char* record_links_and_stages(const char* path);
const char* record_what_is_unknown(const char* path);
const char* start_where_it_cannot(const char* path);

#ifdef __cplusplus
}
#endif
