/* layout.h - where a run's file has what an audit needs. docs/reference/audit.md describes it. */
#ifndef SL_AUDIT_LAYOUT_H
#define SL_AUDIT_LAYOUT_H

#define SL_AUDIT "/entry/sluice/audit"

/* One row for each row of /entry/sluice/frames. */
#define SL_AUDIT_LEAF		 SL_AUDIT "/leaf"		 /* uint8 [rows, 32] */
#define SL_AUDIT_IMAGE		 SL_AUDIT "/image_crc32c"	 /* uint32 [rows] */
#define SL_AUDIT_SOURCE		 SL_AUDIT "/source_crc32c"	 /* uint32 [rows, modules] */
#define SL_AUDIT_KNOWN		 SL_AUDIT "/source_crc32c_known" /* uint64 [rows] */
#define SL_AUDIT_MODULE_SEQUENCE SL_AUDIT "/module_sequence"	 /* uint64 [rows, modules] */
#define SL_AUDIT_SERIES_ROWS	 SL_AUDIT "/series_rows"	 /* uint32 [rows, series] */
#define SL_AUDIT_SERIES_CRC	 SL_AUDIT "/series_crc32c"	 /* uint32 [rows, series] */

/* Attributes of SL_AUDIT_LEAF, in every file that has rows. */
#define SL_AUDIT_RUN_ID	 "run_id"  /* 32 hexadecimal digits */
#define SL_AUDIT_VERSION "version" /* uint32: SL_LEAF_VERSION */
#define SL_AUDIT_SERIES	 "series"  /* the paths of the series, one in a line */
#define SL_AUDIT_STORED	 "stored"  /* the result that the images are */
#define SL_AUDIT_IMAGES	 "images"  /* how they lie: "modules", "assembled", "none" */

/* Of the whole run, in the file that its path names. */
#define SL_AUDIT_ROOT		     SL_AUDIT "/root" /* 64 hexadecimal digits */
#define SL_AUDIT_ROWS		     SL_AUDIT "/rows"
#define SL_AUDIT_ID		     SL_AUDIT "/run_id"
#define SL_AUDIT_FILE_NAME	     SL_AUDIT "/file_name"	     /* texts [files] */
#define SL_AUDIT_FILE_ROWS	     SL_AUDIT "/file_rows"	     /* uint64 [files] */
#define SL_AUDIT_FILE_FIRST_SEQUENCE SL_AUDIT "/file_first_sequence" /* uint64 [files] */
#define SL_AUDIT_FILE_FIRST_IMAGE    SL_AUDIT "/file_first_image"    /* uint64 [files] */
#define SL_AUDIT_FILE_ROOT	     SL_AUDIT "/file_root"	     /* uint8 [files, 32] */

enum { SL_AUDIT_RUN_ID_BYTES = 16, SL_AUDIT_RUN_ID_TEXT = 2 * SL_AUDIT_RUN_ID_BYTES + 1 };

/* Which part of a run it is: bytes of /entry/sluice/cut. */
enum { SL_AUDIT_CUT = 2048 };

#endif
