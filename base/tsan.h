/* SPDX-License-Identifier: MIT */
/* tsan.h - tells ThreadSanitizer of the ordering that libck's inline assembly provides and that it cannot see. */
#ifndef HFI_TSAN_H
#define HFI_TSAN_H

#if defined(__SANITIZE_THREAD__)
#define HFI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HFI_TSAN 1
#endif
#endif

#ifdef HFI_TSAN
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define hfi_tsan_acquire(at) __tsan_acquire(at)
#define hfi_tsan_release(at) __tsan_release(at)
#else
#define hfi_tsan_acquire(at) ((void)(at))
#define hfi_tsan_release(at) ((void)(at))
#endif

#endif
