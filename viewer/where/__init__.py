"""View that answers where a message is: the question, the verdict, the evidence."""
