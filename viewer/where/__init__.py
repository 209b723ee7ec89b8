"""Where is my message: the question, the verdict, the evidence."""
