#ifndef CTIDINGS_NGHTTP2_SHIM_H
#define CTIDINGS_NGHTTP2_SHIM_H
#if !__has_include(<nghttp2/nghttp2.h>)
#error "Tidings needs nghttp2: install the Debian package libnghttp2-dev"
#else
#include <nghttp2/nghttp2.h>

// nghttp2_frame is a union; these read the one member that is needed where it is needed.
static inline uint8_t tidings_h2_frame_type(const nghttp2_frame *_Nonnull frame) { return frame->hd.type; }
static inline uint8_t tidings_h2_frame_flags(const nghttp2_frame *_Nonnull frame) { return frame->hd.flags; }
static inline int32_t tidings_h2_frame_stream(const nghttp2_frame *_Nonnull frame) { return frame->hd.stream_id; }
static inline int tidings_h2_headers_category(const nghttp2_frame *_Nonnull frame) { return frame->headers.cat; }
static inline int32_t tidings_h2_goaway_last_stream(const nghttp2_frame *_Nonnull frame) { return frame->goaway.last_stream_id; }
#endif
#endif
